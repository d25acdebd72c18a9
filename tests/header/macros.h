/* Fills an error with a sentence, as printf does, and gives the status to return. */
#define FOREBAY_FAIL(error, status, ...) (snprintf((error)->message, sizeof (error)->message, __VA_ARGS__), (status))

/*
 * Makes the file a plugin. `symbol` is part of the name of its only exported symbol: letters, digits and `_`, and no other
 * plugin's. Then its decoders and its sources: each an array of pointers with NULL behind the last, or NULL for none. The rest is the
 * manifest, as JSON without the outermost braces, which the host reads before any code of the plugin runs:
 *
 *     "name", "version", "license": texts; may be left out: "repository", a text, and "state_version", a number: a snapshot goes on with
 *         every build that gives the same, and without one with the very same file
 *     "decoders": a list of
 *         "name", "summary"; may be left out: "priority" (128; of decoders that are equally sure the higher wins),
 *         "extensions" (lower case, without the dot), "media_types", "magic" ([{"offset": 0, "bytes": "hexadecimal"}]), "options"
 *     "pipes": a list of sources:
 *         "name", "class": "source", "summary"; may be left out: "options", "on" ("threads"; "own_thread" for one that waits for a
 *         disk, "process" for one that may crash)
 *
 * and "options", of which the first may be given in a graph without its name, is a list of
 *         "name", "kind" ("bool", "int", "uint", "float", "str" or "any"), and, each to be left out: "list" ("no", "yes" or
 *         "either"), "required" (false), "default" (null), "optional" (whether null may be given), "min", "max", "choices" (texts), "doc"
 */
#define FOREBAY_PLUGIN(symbol, decoder_list, source_list, ...)                                                       \
  static const struct __attribute__((packed)) {                                                                      \
    char magic[8];                                                                                                   \
    uint32_t version, kind, major, minor;                                                                            \
    uint8_t pointer_width, endian, unwinds, zero;                                                                    \
    uint32_t reserved;                                                                                               \
    uint64_t len;                                                                                                    \
    char json[sizeof(FOREBAY_JSON(#symbol, #__VA_ARGS__))];                                                          \
  } forebay_manifest __attribute__((used, aligned(8), section(FOREBAY_SECTION))) = {                                 \
      "FOREBAY", 1, 2, FOREBAY_MAJOR, FOREBAY_MINOR, 8 * sizeof(void *), FOREBAY_ENDIAN, 2, 0, 0,                    \
      sizeof(FOREBAY_JSON(#symbol, #__VA_ARGS__)) - 1, FOREBAY_JSON(#symbol, #__VA_ARGS__)};                         \
  FOREBAY_EXPORT const ForebayPlugin forebay_plugin_##symbol = {                                                     \
      sizeof(ForebayPlugin), FOREBAY_MAJOR, FOREBAY_MINOR, &forebay_manifest, decoder_list, source_list};

/* What follows is for FOREBAY_PLUGIN alone. */

#define FOREBAY_JSON(symbol, manifest)                                                                               \
  "{\"entry\":\"forebay_plugin_" symbol "\",\"target\":\"" FOREBAY_TARGET "\",\"rustc\":\"" FOREBAY_COMPILER         \
  "\",\"cpu\":[" FOREBAY_CPU "]," manifest "}"

#ifdef __cplusplus
#define FOREBAY_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define FOREBAY_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __APPLE__
#define FOREBAY_SECTION "__DATA,__forebay"
#else
#define FOREBAY_SECTION ".forebay"
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define FOREBAY_ENDIAN 1
#else
#define FOREBAY_ENDIAN 2
#endif

#ifdef __clang__
#define FOREBAY_COMPILER __VERSION__
#else
#define FOREBAY_COMPILER "cc " __VERSION__
#endif

#if defined(__AVX512F__)
#define FOREBAY_CPU "\"avx512f\",\"avx2\",\"fma\""
#elif defined(__AVX2__) && defined(__FMA__)
#define FOREBAY_CPU "\"avx2\",\"fma\""
#elif defined(__AVX2__)
#define FOREBAY_CPU "\"avx2\""
#else
#define FOREBAY_CPU ""
#endif

/* The system that it is compiled for, by the name that hosts have for theirs. Others define FOREBAY_TARGET themselves. */
#ifndef FOREBAY_TARGET
#if defined(__x86_64__)
#define FOREBAY_ARCH "x86_64"
#elif defined(__aarch64__)
#define FOREBAY_ARCH "aarch64"
#else
#error "define FOREBAY_TARGET as the target triple that `forebay plugins show` prints for a plugin of this system"
#endif
#if defined(__APPLE__)
#define FOREBAY_TARGET FOREBAY_ARCH "-apple-darwin"
#elif defined(__linux__) && defined(__GLIBC__)
#define FOREBAY_TARGET FOREBAY_ARCH "-unknown-linux-gnu"
#elif defined(__linux__)
#define FOREBAY_TARGET FOREBAY_ARCH "-unknown-linux-musl"
#else
#error "define FOREBAY_TARGET as the target triple that `forebay plugins show` prints for a plugin of this system"
#endif
#endif
