/*
 * Forebay plugins in C, version 1.
 *
 * A plugin is one C file with decoders (bytes of a value to a value), sources (where samples come from) or both:
 *
 *     #include "forebay.h"
 *
 *     static int32_t decode(void *instance, const ForebayInput *input, ForebayHost *host, ForebayError *error) {
 *         (void)instance;
 *         if (input->len % 2)
 *             return FOREBAY_FAIL(error, FOREBAY_CORRUPT, "%zu bytes, expected pairs", input->len);
 *         int64_t shape[] = {(int64_t)(input->len / 2)};
 *         ForebayData data = {input->bytes, input->len, NULL, NULL};
 *         host->put_tensor(host, FOREBAY_ROOT, FOREBAY_INT16, 1, shape, data);
 *         return FOREBAY_OK;
 *     }
 *
 *     static const ForebayDecoder PAIRS = {.size = sizeof PAIRS, .name = "pairs", .decode = decode};
 *     static const ForebayDecoder *const DECODERS[] = {&PAIRS, NULL};
 *
 *     FOREBAY_PLUGIN(pairs, DECODERS, NULL,
 *         "name": "pairs", "version": "1.0.0", "license": "MIT",
 *         "decoders": [{"name": "pairs", "summary": "Pairs of bytes", "extensions": ["pairs"]}])
 *
 * To compile it:
 *
 *     cc -shared -fPIC -O2 -I include pairs.c -o libpairs.so
 *
 * Put into a folder of FOREBAY_PLUGIN_PATH, it decodes every field called `pairs` or `*.pairs`.
 *
 * Rules:
 * - Every function of a plugin returns a status, and after a failure has filled the error. Nothing is thrown through a call.
 * - A decoder is stateless and is called from many threads at once; a source is called by one thread at a time, not always the same.
 *   Functions of the host are called on the thread of the call, before it returns.
 * - Pointers that a call is given live as long as the call; so does memory of `alloc`, unless it became part of a value.
 * - Input may be damaged on purpose: look at every length before you use it, and at the limits before you take memory.
 * - Tables are static, begin with their size and grow at their end: one that is shorter than the host's lacks what it does not have.
 *   Leave out what you do not need, with `.name =` initialisers. Before you use of a host's table what came after 1.0, look at its size.
 *   A minor version only adds to ends; what is here changes with the major version alone, and then older plugins are refused by name.
 */

#ifndef FOREBAY_H
#define FOREBAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The Arrow C Data Interface, as its specification has it: https://arrow.apache.org/docs/format/CDataInterface.html */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
  const char *format;
  const char *name;
  const char *metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema **children;
  struct ArrowSchema *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void **buffers;
  struct ArrowArray **children;
  struct ArrowArray *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};

#endif /* ARROW_C_DATA_INTERFACE */

// The major version of this interface; a plugin of another is refused.
#define FOREBAY_MAJOR 1

// Counts what was added since; plugin and host may differ.
#define FOREBAY_MINOR 0

// Done.
#define FOREBAY_OK 0

// Failed: the system could not read or write; trying again may help.
#define FOREBAY_IO 1

// Failed: the bytes break their format's rules.
#define FOREBAY_CORRUPT 2

// Failed: the bytes are right, but this feature of the format is not handled.
#define FOREBAY_UNSUPPORTED 3

// Failed: an option is wrong.
#define FOREBAY_INVALID 4

// Failed: a limit was met before memory was taken.
#define FOREBAY_LIMIT 5

// Failed: the run was stopped.
#define FOREBAY_CANCELLED 9

// Failed: the plugin broke one of its own promises.
#define FOREBAY_BUG 10

// No failure: a source has no more samples.
#define FOREBAY_END 100

// Element type: truth, one byte.
#define FOREBAY_BOOL 67590

// Element type: signed, 8 bits.
#define FOREBAY_INT8 67584

// Element type: signed, 16 bits.
#define FOREBAY_INT16 69632

// Element type: signed, 32 bits.
#define FOREBAY_INT32 73728

// Element type: signed, 64 bits.
#define FOREBAY_INT64 81920

// Element type: unsigned, 8 bits.
#define FOREBAY_UINT8 67585

// Element type: unsigned, 16 bits.
#define FOREBAY_UINT16 69633

// Element type: unsigned, 32 bits.
#define FOREBAY_UINT32 73729

// Element type: unsigned, 64 bits.
#define FOREBAY_UINT64 81921

// Element type: IEEE half.
#define FOREBAY_FLOAT16 69634

// Element type: the upper half of an IEEE single.
#define FOREBAY_BFLOAT16 69636

// Element type: IEEE single.
#define FOREBAY_FLOAT32 73730

// Element type: IEEE double.
#define FOREBAY_FLOAT64 81922

// The value that a call makes; its fields are a sample's.
#define FOREBAY_ROOT 0

// No value: what adding gives when it fails.
#define FOREBAY_NONE 4294967295

// The index of a key whose origin is one sample.
#define FOREBAY_WHOLE 18446744073709551615ull

// The options of one decoder or source, checked against the manifest, with the defaults of those that were not given.
// Texts live as long as the call of `open`.
typedef struct ForebayOptions {
  // Bytes in this struct.
  size_t size;
  // All of them as a JSON object.
  const char *json;
  // A text; null for an option that is none.
  const char *(*text)(const struct ForebayOptions *options, const char *name);
  // A whole number or truth; `otherwise` for an option that is none.
  // Of one above INT64_MAX it is what `(uint64_t)` makes it again.
  int64_t (*integer)(const struct ForebayOptions *options, const char *name, int64_t otherwise);
  // A number; `otherwise` for an option that is none.
  double (*number)(const struct ForebayOptions *options, const char *name, double otherwise);
} ForebayOptions;

// Why a call failed: the plugin writes a sentence, which ends with a zero, and the host copies it.
// It says what was found, where (the byte), and what was expected. `FOREBAY_FAIL` fills it.
typedef struct ForebayError {
  // Bytes in this struct.
  size_t size;
  // The sentence.
  char message[1016];
} ForebayError;

// What is to be decoded.
typedef struct ForebayInput {
  // Bytes in this struct.
  size_t size;
  // The bytes: immutable, and of any alignment.
  const uint8_t *bytes;
  // How many.
  size_t len;
  // The extension of the name they came under, without the dot; may be empty, and may be wrong.
  const char *extension;
  // The element type that is wished for in a tensor; 0 for the one the decoder gives by itself.
  uint32_t dtype;
} ForebayInput;

// A value under construction, or one inside of it: a number that the host gave out in this call.
typedef uint32_t ForebayValue;

// Bytes of a value. The host does not copy them: `release` is called once, with `owner`, on any thread, when nobody
// reads them any more, and also when the call that took them fails.
// Without a `release` they must lie in the input, or in memory that `alloc` gave in this call.
typedef struct ForebayData {
  // The first byte.
  const void *bytes;
  // How many.
  size_t len;
  // Gives the bytes back; null for those of the host.
  void (*release)(void *owner);
  // The argument of `release`.
  void *owner;
} ForebayData;

// What the host offers during one call, on the thread of the call. Pass the same pointer as the first argument.
//
// Values are built from the root: set it to something, or add fields or items and set those. Each is set once. All
// functions return `FOREBAY_OK` or a failure, which may be ignored: the host keeps the first, and the call fails with
// it whatever it returns.
typedef struct ForebayHost {
  // Bytes in this struct.
  size_t size;
  // The most bytes one value may decode to; to be checked before memory is taken.
  uint64_t max_bytes;
  // The most pixels one picture may have.
  uint64_t max_pixels;
  // The run's seed: randomness is a function of it, the epoch and the sample's number.
  uint64_t seed;
  // The epoch, from 0.
  uint64_t epoch;
  // Which pass of the epoch this is: 0 for the first.
  uint64_t pass;
  // Memory for output, with anything in it, which the host frees; null where it gives no more.
  void *(*alloc)(struct ForebayHost *host, size_t len);
  // Whether the run was stopped (not 0): a long call looks now and then, and returns `FOREBAY_CANCELLED`.
  int32_t (*cancelled)(struct ForebayHost *host);
  // Writes a line to the host's log: level 1 error, 2 warning, 3 information, 4 detail.
  int32_t (*log)(struct ForebayHost *host, uint32_t level, const char *line);
  // Sets a value to null.
  int32_t (*put_null)(struct ForebayHost *host, ForebayValue at);
  // Sets a value to false (0) or true.
  int32_t (*put_bool)(struct ForebayHost *host, ForebayValue at, int32_t truth);
  // Sets a value to a signed integer.
  int32_t (*put_int)(struct ForebayHost *host, ForebayValue at, int64_t number);
  // Sets a value to an unsigned integer.
  int32_t (*put_uint)(struct ForebayHost *host, ForebayValue at, uint64_t number);
  // Sets a value to a float.
  int32_t (*put_float)(struct ForebayHost *host, ForebayValue at, double number);
  // Sets a value to UTF-8 text of `len` bytes, which is copied.
  int32_t (*put_text)(struct ForebayHost *host, ForebayValue at, const char *text, size_t len);
  // Sets a value to bytes, which are not copied.
  int32_t (*put_bytes)(struct ForebayHost *host, ForebayValue at, struct ForebayData data);
  // Sets a value to a row-major tensor: a `FOREBAY_` element type, so many axes (at most 8), and data of just as many
  // elements, in this machine's byte order. The shape is copied, the data are not, unless they are out of line.
  int32_t (*put_tensor)(struct ForebayHost *host,
                        ForebayValue at,
                        uint32_t dtype,
                        size_t axes,
                        const int64_t *shape,
                        struct ForebayData data);
  // Sets a value to columns by the Arrow C Data Interface. Both structs are moved: their `release` becomes null.
  int32_t (*put_arrow)(struct ForebayHost *host, ForebayValue at, struct ArrowSchema *schema, struct ArrowArray *array);
  // Sets a value to a list, to which items may be added; for one that may stay empty.
  int32_t (*put_list)(struct ForebayHost *host, ForebayValue at);
  // Sets a value to a struct, to which fields may be added; for one that may stay without.
  int32_t (*put_struct)(struct ForebayHost *host, ForebayValue at);
  // Adds an item to a list, or to a value that was not set, which becomes one; gives the item, to be set.
  ForebayValue (*add_item)(struct ForebayHost *host, ForebayValue list);
  // Adds a field to a struct, or to a value that was not set, which becomes one; gives the field, to be set.
  ForebayValue (*add_field)(struct ForebayHost *host, ForebayValue fields, const char *name);
  // In `next`: where the sample came from, as a person finds it: a file, a name in it (or null), an index in it (or
  // `FOREBAY_WHOLE`). Without it the source's name and how many samples came before.
  int32_t (*set_key)(struct ForebayHost *host, const char *origin, const char *name, uint64_t index);
  // In `next`: the sample's number, which random draws for it are keyed by: the same in every epoch, whatever the
  // order. Without it how many samples came before in this epoch.
  int32_t (*set_number)(struct ForebayHost *host, uint64_t number);
} ForebayHost;

// A decoder: turns the bytes of one value into a value. Stateless: `probe` and `decode` are called for one instance from
// many threads at once.
typedef struct ForebayDecoder {
  // `sizeof(ForebayDecoder)`.
  size_t size;
  // Its name, as in the manifest.
  const char *name;
  // Makes an instance; null for a decoder without options. After a failure there is none to close.
  int32_t (*open)(const struct ForebayOptions *options, void **instance, struct ForebayError *error);
  // Frees the instance; may be null.
  void (*close)(void *instance);
  // How sure it is, from 0 (no) to 255, that bytes with this head (at most 4 KiB) are its own. May be null: then
  // the manifest's magic bytes and extensions are trusted.
  int32_t (*probe)(void *instance, const uint8_t *head, size_t len, const char *extension);
  // Decodes.
  int32_t (*decode)(void *instance,
                    const struct ForebayInput *input,
                    struct ForebayHost *host,
                    struct ForebayError *error);
} ForebayDecoder;

// A source of samples. Its functions are called one at a time, not always on the same thread. The host deals samples out
// to ranks and workers.
typedef struct ForebaySource {
  // `sizeof(ForebaySource)`.
  size_t size;
  // Its name in a graph, as in the manifest.
  const char *name;
  // Makes an instance, and opens no file: a graph is checked without touching data. May be null. After a failure there is none to close.
  int32_t (*open)(const struct ForebayOptions *options, void **instance, struct ForebayError *error);
  // Frees the instance; may be null.
  void (*close)(void *instance);
  // Goes to the first sample of the epoch in `host`; called before the first `next`.
  int32_t (*reset)(void *instance, struct ForebayHost *host, struct ForebayError *error);
  // Gives one sample, as fields of the root, or `FOREBAY_END`. Columns of many rows are one sample with an Arrow
  // field. After a failure the next call goes on behind the place that failed.
  int32_t (*next)(void *instance, struct ForebayHost *host, struct ForebayError *error);
  // Writes at most `room` bytes of what `restore` needs to go on with the next sample, and sets `len` to how many there are;
  // with more than `room` it is called again. Null where the position cannot be saved: then a resume
  // reads the epoch again from its start.
  int32_t (*state)(void *instance, void *bytes, size_t room, size_t *len, struct ForebayError *error);
  // Goes to a saved position; called after `reset`. The bytes may be of any origin.
  int32_t (*restore)(void *instance, const void *bytes, size_t len, struct ForebayHost *host, struct ForebayError *error);
  // How many samples an epoch has, where that is known before it is read: `FOREBAY_OK`, else any failure. May be null.
  int32_t (*len)(void *instance, uint64_t *len);
} ForebaySource;

// The only symbol of a plugin, which `FOREBAY_PLUGIN` defines.
typedef struct ForebayPlugin {
  // `sizeof(ForebayPlugin)`.
  size_t size;
  // `FOREBAY_MAJOR` of the header it was compiled with.
  uint32_t major;
  // `FOREBAY_MINOR`.
  uint32_t minor;
  // The manifest: named here so that no linker leaves it out.
  const void *manifest;
  // The decoders, and null behind the last; or null for none.
  const struct ForebayDecoder *const *decoders;
  // The sources, and null behind the last; or null for none.
  const struct ForebaySource *const *sources;
} ForebayPlugin;

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

#endif /* FOREBAY_H */
