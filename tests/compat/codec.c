/* A codec as two plugins bring it along, each in a version of its own: the same names, other answers, a state. */
#include <stddef.h>

unsigned codec_calls = 0;

unsigned codec_version(void) { return CODEC_VERSION; }

unsigned codec_sum(const unsigned char *bytes, size_t len) {
    unsigned sum = codec_version();
    for (size_t at = 0; at < len; at++) {
        sum = sum * (CODEC_VERSION + 1) + bytes[at];
    }
    return sum;
}

/* How often it was called: it adds the version, so that two that share the count are found out. */
unsigned codec_count(void) { return __atomic_add_fetch(&codec_calls, codec_version(), __ATOMIC_RELAXED); }
