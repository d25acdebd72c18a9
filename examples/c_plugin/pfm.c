/* PFM, the float maps that depth and optical flow are kept in: three lines of text, then the numbers, the lowest row first. */
#include "forebay.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 64 }; /* longer than any line of the header */

/* Copies the line at `*at` without its end and goes on behind it; 0 where there is none. */
static int line(const ForebayInput *input, size_t *at, char text[LINE]) {
    const uint8_t *start = input->bytes + *at, *end = memchr(start, '\n', input->len - *at);
    size_t len = end == NULL ? LINE : (size_t)(end - start);
    if (len >= LINE || memchr(start, 0, len) != NULL)
        return 0;
    *at += len + 1;
    while (len > 0 && (start[len - 1] == ' ' || start[len - 1] == '\r'))
        len--;
    memcpy(text, start, len);
    text[len] = 0;
    return 1;
}

/* Copies numbers of either byte order into those of this machine. */
static void copy_row(float *to, const uint8_t *from, size_t count, int little) {
    for (size_t at = 0; at < count; at++, from += 4) {
        uint32_t bits = 0;
        for (int byte = 0; byte < 4; byte++)
            bits |= (uint32_t)from[byte] << 8 * (little ? byte : 3 - byte);
        memcpy(to + at, &bits, sizeof bits);
    }
}

static int32_t decode(void *instance, const ForebayInput *input, ForebayHost *host, ForebayError *error) {
    (void)instance;
    char kind[LINE], sides[LINE], scale[LINE], rest;
    size_t at = 0;
    if (!line(input, &at, kind) || !line(input, &at, sides) || !line(input, &at, scale))
        return FOREBAY_FAIL(error, FOREBAY_CORRUPT, "the header is cut off behind byte %zu, or no text", at);
    int channels = strcmp(kind, "Pf") == 0 ? 1 : strcmp(kind, "PF") == 0 ? 3 : 0;
    if (channels == 0)
        return FOREBAY_FAIL(error, FOREBAY_CORRUPT, "found `%s`, expected Pf or PF", kind);
    long width, height;
    /* At most nine digits of each, so that no product below overflows. */
    if (sscanf(sides, "%9ld %9ld %c", &width, &height, &rest) != 2 || width < 1 || height < 1)
        return FOREBAY_FAIL(error, FOREBAY_CORRUPT, "found `%s`, expected a width and a height", sides);
    char *end;
    double order = strtod(scale, &end);
    if (end == scale || *end != 0)
        return FOREBAY_FAIL(error, FOREBAY_CORRUPT, "found `%s`, expected a number, the scale", scale);
    uint64_t count = (uint64_t)width * (uint64_t)channels;
    if (input->len - at != count * 4 * (uint64_t)height)
        return FOREBAY_FAIL(error, FOREBAY_CORRUPT, "found %zu bytes of numbers, expected %ld x %ld x %d x 4",
                            input->len - at, width, height, channels);

    /* Memory of the host's, which is used again and may be the sample's place in its batch. */
    size_t len = input->len - at;
    float *numbers = host->alloc(host, len);
    if (numbers == NULL)
        return FOREBAY_LIMIT; /* The host knows why. */
    for (uint64_t row = 0; row < (uint64_t)height; row++)
        copy_row(numbers + row * count, input->bytes + input->len - (row + 1) * count * 4, count, order < 0);
    int64_t shape[] = {height, width, channels};
    ForebayData data = {numbers, len, NULL, NULL};
    host->put_tensor(host, FOREBAY_ROOT, FOREBAY_FLOAT32, channels == 1 ? 2 : 3, shape, data);
    return FOREBAY_OK;
}

static const ForebayDecoder PFM = {.size = sizeof PFM, .name = "pfm", .decode = decode};
static const ForebayDecoder *const DECODERS[] = {&PFM, NULL};

FOREBAY_PLUGIN(pfm, DECODERS, NULL,
    "name": "pfm", "version": "1.0.0", "license": "MIT",
    "decoders": [{"name": "pfm", "summary": "Portable float maps to float32 [height, width] or [height, width, 3]",
                  "extensions": ["pfm"], "magic": [{"offset": 0, "bytes": "50660a"}, {"offset": 0, "bytes": "50460a"}]}])
