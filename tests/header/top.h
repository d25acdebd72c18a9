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
