/* NIfTI-1, as brain scans come in: a decoder of whole volumes, and a source of one volume's slices. */
#include "forebay.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER = 348 };

typedef struct {
    int swapped;        /* written on a machine of the other byte order */
    uint32_t dtype;
    size_t element;     /* bytes in one */
    size_t axes;
    int64_t shape[7];   /* slowest axis first, as tensors have it; the file says them the other way round */
    double spacing[7];
    double slope, intercept;
    uint64_t offset, len;
} Volume;

/* Turns the bytes of each element round. */
static void swap(void *elements, size_t len, size_t element) {
    for (uint8_t *at = elements; at < (uint8_t *)elements + len; at += element)
        for (size_t low = 0, high = element - 1; low < high; low++, high--) {
            uint8_t byte = at[low];
            at[low] = at[high], at[high] = byte;
        }
}

static int int16_at(const uint8_t *header, size_t at, int swapped) {
    int16_t number;
    memcpy(&number, header + at, sizeof number);
    if (swapped)
        swap(&number, sizeof number, sizeof number);
    return number;
}

static double float_at(const uint8_t *header, size_t at, int swapped) {
    float number;
    memcpy(&number, header + at, sizeof number);
    if (swapped)
        swap(&number, sizeof number, sizeof number);
    return number;
}

static int32_t parse(const uint8_t *header, uint64_t limit, Volume *volume, ForebayError *error) {
    static const struct { int16_t code; uint8_t element; uint32_t dtype; } TYPES[] = {
        {2, 1, FOREBAY_UINT8},     {4, 2, FOREBAY_INT16},    {8, 4, FOREBAY_INT32},   {16, 4, FOREBAY_FLOAT32},
        {64, 8, FOREBAY_FLOAT64},  {256, 1, FOREBAY_INT8},   {512, 2, FOREBAY_UINT16}, {768, 4, FOREBAY_UINT32},
        {1024, 8, FOREBAY_INT64},  {1280, 8, FOREBAY_UINT64},
    };
    int32_t size;
    memcpy(&size, header, sizeof size);
    volume->swapped = size != HEADER;
    if (volume->swapped)
        swap(&size, sizeof size, sizeof size);
    if (size != HEADER || memcmp(header + 344, "n+1", 4) != 0)
        return FOREBAY_FAIL(error, FOREBAY_CORRUPT, "no NIfTI-1 header of 348 bytes with `n+1` at byte 344");

    int swapped = volume->swapped, axes = int16_at(header, 40, swapped), type = int16_at(header, 70, swapped);
    if (axes < 1 || axes > 7)
        return FOREBAY_FAIL(error, FOREBAY_CORRUPT, "byte 40: %d axes, expected 1 to 7", axes);
    volume->element = 0;
    for (size_t at = 0; at < sizeof TYPES / sizeof *TYPES; at++)
        if (TYPES[at].code == type)
            volume->element = TYPES[at].element, volume->dtype = TYPES[at].dtype;
    if (volume->element == 0)
        return FOREBAY_FAIL(error, FOREBAY_UNSUPPORTED, "byte 70: data type %d", type);

    volume->axes = (size_t)axes;
    volume->len = volume->element;
    for (int axis = 0; axis < axes; axis++) {
        int length = int16_at(header, 42 + 2 * axis, swapped);
        if (length < 1)
            return FOREBAY_FAIL(error, FOREBAY_CORRUPT, "byte %d: axis of length %d", 42 + 2 * axis, length);
        if (volume->len > limit / (uint64_t)length)
            return FOREBAY_FAIL(error, FOREBAY_LIMIT, "more than %llu bytes of voxels", (unsigned long long)limit);
        volume->len *= (uint64_t)length;
        volume->shape[axes - 1 - axis] = length;
        volume->spacing[axes - 1 - axis] = float_at(header, 80 + 4 * axis, swapped);
    }
    double offset = float_at(header, 108, swapped);
    if (!(offset >= HEADER && offset < 9e15))
        return FOREBAY_FAIL(error, FOREBAY_CORRUPT, "byte 108: voxels at byte %g, behind %d expected", offset, HEADER);
    volume->offset = (uint64_t)offset;
    volume->slope = float_at(header, 112, swapped);
    volume->intercept = float_at(header, 116, swapped);
    return FOREBAY_OK;
}

static int32_t decode(void *instance, const ForebayInput *input, ForebayHost *host, ForebayError *error) {
    (void)instance;
    Volume volume;
    if (input->len < HEADER)
        return FOREBAY_FAIL(error, FOREBAY_CORRUPT, "%zu bytes, expected a header of %d", input->len, HEADER);
    int32_t status = parse(input->bytes, host->max_bytes, &volume, error);
    if (status != FOREBAY_OK)
        return status;
    if (volume.offset > input->len || volume.len > input->len - volume.offset)
        return FOREBAY_FAIL(error, FOREBAY_CORRUPT, "voxels end at byte %llu of %zu",
                            (unsigned long long)(volume.offset + volume.len), input->len);

    /* Without a release: a part of the input, which is not copied, or the host's own memory. */
    ForebayData data = {input->bytes + volume.offset, (size_t)volume.len, NULL, NULL};
    if (volume.swapped) {
        void *voxels = host->alloc(host, data.len);
        if (voxels == NULL)
            return FOREBAY_LIMIT; /* The host knows why. */
        memcpy(voxels, data.bytes, data.len);
        swap(voxels, data.len, volume.element);
        data.bytes = voxels;
    }
    host->put_tensor(host, host->add_field(host, FOREBAY_ROOT, "image"), volume.dtype, volume.axes, volume.shape, data);
    ForebayValue spacing = host->add_field(host, FOREBAY_ROOT, "spacing");
    host->put_list(host, spacing);
    for (size_t axis = 0; axis < volume.axes; axis++)
        host->put_float(host, host->add_item(host, spacing), volume.spacing[axis]);
    host->put_float(host, host->add_field(host, FOREBAY_ROOT, "slope"), volume.slope);
    host->put_float(host, host->add_field(host, FOREBAY_ROOT, "intercept"), volume.intercept);
    return FOREBAY_OK;
}

typedef struct {
    char *path;
    FILE *file;
    Volume volume;
    uint64_t slice, slices;
} Slices;

static int32_t slices_open(const ForebayOptions *options, void **instance, ForebayError *error) {
    const char *path = options->text(options, "path");
    Slices *slices = calloc(1, sizeof *slices);
    if (slices == NULL || path == NULL || (slices->path = malloc(strlen(path) + 1)) == NULL) {
        free(slices);
        return FOREBAY_FAIL(error, FOREBAY_LIMIT, "no memory for a path");
    }
    strcpy(slices->path, path);
    *instance = slices;
    return FOREBAY_OK;
}

static void slices_close(void *instance) {
    Slices *slices = instance;
    if (slices->file)
        fclose(slices->file);
    free(slices->path);
    free(slices);
}

static int32_t slices_reset(void *instance, ForebayHost *host, ForebayError *error) {
    Slices *slices = instance;
    uint8_t header[HEADER];
    (void)host;
    if (slices->file == NULL && (slices->file = fopen(slices->path, "rb")) == NULL)
        return FOREBAY_FAIL(error, FOREBAY_IO, "cannot open %s", slices->path);
    rewind(slices->file);
    if (fread(header, 1, HEADER, slices->file) != HEADER)
        return FOREBAY_FAIL(error, FOREBAY_CORRUPT, "%s: no header of %d bytes", slices->path, HEADER);
    int32_t status = parse(header, INT64_MAX / 2, &slices->volume, error);
    slices->slice = slices->slices = 0;
    if (status != FOREBAY_OK)
        return status;
    slices->slices = 1;
    for (size_t axis = 0; axis + 2 < slices->volume.axes; axis++)
        slices->slices *= (uint64_t)slices->volume.shape[axis];
    return FOREBAY_OK;
}

static int32_t slices_next(void *instance, ForebayHost *host, ForebayError *error) {
    Slices *slices = instance;
    Volume *volume = &slices->volume;
    if (slices->slice == slices->slices)
        return FOREBAY_END;
    uint64_t slice = slices->slice++;
    ForebayData data = {NULL, (size_t)(volume->len / slices->slices), NULL, NULL};
    void *voxels = host->alloc(host, data.len);
    if (voxels == NULL)
        return FOREBAY_LIMIT;
    if (fseek(slices->file, (long)(volume->offset + slice * data.len), SEEK_SET) != 0 ||
        fread(voxels, 1, data.len, slices->file) != data.len)
        return FOREBAY_FAIL(error, FOREBAY_CORRUPT, "%s: ends in slice %llu", slices->path, (unsigned long long)slice);
    if (volume->swapped)
        swap(voxels, data.len, volume->element);
    data.bytes = voxels;
    size_t axes = volume->axes < 2 ? volume->axes : 2;
    host->put_tensor(host, host->add_field(host, FOREBAY_ROOT, "image"), volume->dtype, axes,
                     volume->shape + volume->axes - axes, data);
    host->set_key(host, slices->path, NULL, slice);
    return FOREBAY_OK;
}

static int32_t slices_state(void *instance, void *bytes, size_t room, size_t *len, ForebayError *error) {
    (void)error;
    *len = sizeof(uint64_t);
    if (room >= *len)
        memcpy(bytes, &((Slices *)instance)->slice, *len);
    return FOREBAY_OK;
}

static int32_t slices_restore(void *instance, const void *bytes, size_t len, ForebayHost *host, ForebayError *error) {
    uint64_t slice = UINT64_MAX;
    (void)host;
    if (len == sizeof slice)
        memcpy(&slice, bytes, len);
    if (slice > ((Slices *)instance)->slices)
        return FOREBAY_FAIL(error, FOREBAY_INVALID, "a state of %zu bytes that is none of this volume", len);
    ((Slices *)instance)->slice = slice;
    return FOREBAY_OK;
}

static const ForebayDecoder NIFTI = {.size = sizeof NIFTI, .name = "nifti", .decode = decode};
static const ForebaySource SLICES = {
    .size = sizeof SLICES, .name = "nifti_slices", .open = slices_open, .close = slices_close, .reset = slices_reset,
    .next = slices_next, .state = slices_state, .restore = slices_restore,
};
static const ForebayDecoder *const DECODERS[] = {&NIFTI, NULL};
static const ForebaySource *const SOURCES[] = {&SLICES, NULL};

FOREBAY_PLUGIN(nifti, DECODERS, SOURCES,
    "name": "nifti", "version": "1.0.0", "license": "MIT", "state_version": 1,
    "decoders": [{"name": "nifti", "summary": "NIfTI-1 volumes: image, spacing, slope, intercept",
                  "extensions": ["nii"], "magic": [{"offset": 344, "bytes": "6e2b3100"}]}],
    "pipes": [{"name": "nifti_slices", "class": "source", "summary": "The slices of one NIfTI-1 file, last axis first",
               "options": [{"name": "path", "kind": "str", "required": true, "doc": "The file, not packed"}]}])
