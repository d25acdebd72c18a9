/* A plugin in C that misbehaves on purpose: what is wrong with its tables is chosen by a macro, what its decoder does by the input's
 * first byte, and what its source does by its option. */
#include "forebay.h"

#include <stdlib.h>
#include <string.h>

static int64_t released;

static void release(void *owner) {
    free(owner);
    __atomic_fetch_add(&released, 1, __ATOMIC_SEQ_CST);
}

/* Bytes of the plugin's own, which are counted when they are given back. */
static ForebayData own(size_t len) {
    void *bytes = malloc(len);
    memset(bytes, 7, len);
    ForebayData data = {bytes, len, release, bytes};
    return data;
}

static void release_schema(struct ArrowSchema *schema) {
    schema->release = NULL;
    __atomic_fetch_add(&released, 1, __ATOMIC_SEQ_CST);
}

static void release_array(struct ArrowArray *array) {
    array->release = NULL;
    __atomic_fetch_add(&released, 1, __ATOMIC_SEQ_CST);
}

static const int32_t NUMBERS[] = {1, 2, 3};
static const void *BUFFERS[] = {NULL, NUMBERS};

static void columns(ForebayHost *host, ForebayValue at) {
    struct ArrowSchema schema = {.format = "i", .name = "", .release = release_schema};
    struct ArrowArray array = {.length = 3, .n_buffers = 2, .buffers = BUFFERS, .release = release_array};
    host->put_arrow(host, at, &schema, &array);
}

static void everything(const ForebayInput *input, ForebayHost *host) {
    int64_t shape[] = {2, 2};
    ForebayData part = {input->bytes + 1, input->len - 1, NULL, NULL};
    ForebayData block = {host->alloc(host, 16), 16, NULL, NULL};
    memset((void *)block.bytes, 1, 16);
    host->put_null(host, host->add_field(host, FOREBAY_ROOT, "null"));
    host->put_bool(host, host->add_field(host, FOREBAY_ROOT, "bool"), 2);
    host->put_int(host, host->add_field(host, FOREBAY_ROOT, "int"), -3);
    host->put_uint(host, host->add_field(host, FOREBAY_ROOT, "uint"), UINT64_MAX);
    host->put_float(host, host->add_field(host, FOREBAY_ROOT, "float"), 0.5);
    host->put_text(host, host->add_field(host, FOREBAY_ROOT, "text"), "heron", 5);
    host->put_text(host, host->add_field(host, FOREBAY_ROOT, "extension"), input->extension, strlen(input->extension));
    host->put_bytes(host, host->add_field(host, FOREBAY_ROOT, "own"), own(5));
    host->put_bytes(host, host->add_field(host, FOREBAY_ROOT, "part"), part);
    host->put_tensor(host, host->add_field(host, FOREBAY_ROOT, "tensor"), FOREBAY_INT32, 2, shape, block);
    ForebayValue list = host->add_field(host, FOREBAY_ROOT, "list"), inner = host->add_item(host, list);
    host->put_int(host, host->add_item(host, list), 1);
    host->put_int(host, host->add_field(host, inner, "a"), 2);
    host->put_list(host, host->add_field(host, FOREBAY_ROOT, "nothing"));
    columns(host, host->add_field(host, FOREBAY_ROOT, "columns"));
}

static int32_t decode(void *instance, const ForebayInput *input, ForebayHost *host, ForebayError *error) {
    (void)instance;
    int64_t four[] = {4}, negative[] = {-4, -1}, nine[] = {1, 1, 1, 1, 1, 1, 1, 1, 4};
    ForebayData data = {NULL, 4, release, malloc(1)}, loose = {NUMBERS, 12, NULL, NULL};
    ForebayValue at = FOREBAY_ROOT;
    switch (input->len ? input->bytes[0] : 0) {
    case 'v': everything(input, host); break;
    case '?': host->put_int(host, at, released); break;
    case 'n': break;
    case 's': host->put_null(host, at); host->put_bytes(host, at, own(4)); break;
    case 'd': host->put_tensor(host, at, 0x00012003, 1, four, own(16)); break;
    case 'l': host->put_tensor(host, at, FOREBAY_INT16, 1, four, own(9)); break;
    case 'a': host->put_tensor(host, at, FOREBAY_UINT8, 2, negative, own(4)); break;
    case '9': host->put_tensor(host, at, FOREBAY_UINT8, 9, nine, own(4)); break;
    case 'u': host->put_text(host, at, "her\xffon", 6); break;
    case 'N': host->put_null(host, host->add_field(host, at, "\xff")); break;
    case 'x': host->put_bytes(host, at, own(4)); free(data.owner); return 77;
    case 'e': free(data.owner); return FOREBAY_END;
    case 'p': host->put_bytes(host, at, data); return FOREBAY_OK;
    case 'm': host->put_bytes(host, at, loose); break;
    case 'f':
        host->put_bytes(host, host->add_field(host, at, "whole"), own(4));
        host->add_field(host, at, "hole");
        break;
    case 't':
        host->put_bytes(host, host->add_field(host, at, "twin"), own(4));
        host->put_null(host, host->add_field(host, at, "twin"));
        break;
    case 'i': host->put_struct(host, at); host->put_null(host, host->add_item(host, at)); break;
    case 'o': host->alloc(host, (size_t)host->max_bytes + 1); break;
    case 'h': host->put_bytes(host, 99, own(4)); break;
    case 'D': for (int depth = 0; depth < 200; depth++) at = host->add_item(host, at); host->put_null(host, at); break;
    case 'r': {
        struct ArrowSchema schema = {.format = "i", .release = release_schema};
        struct ArrowArray array = {.length = 0};
        host->put_arrow(host, at, &schema, &array);
        break;
    }
    case 'q': free(data.owner); return FOREBAY_CORRUPT;
    case 'b': free(data.owner); return FOREBAY_FAIL(error, FOREBAY_UNSUPPORTED, "caf\xe9");
    case 'c': host->put_bytes(host, at, own(4)); free(data.owner); return FOREBAY_FAIL(error, FOREBAY_CORRUPT, "byte %d", 3);
    default: free(data.owner); return FOREBAY_FAIL(error, FOREBAY_UNSUPPORTED, "unknown deed");
    }
    free(data.owner);
    return FOREBAY_OK;
}

static int32_t probe(void *instance, const uint8_t *head, size_t len, const char *extension) {
    (void)instance, (void)head, (void)len;
    return strcmp(extension, "unsure") == 0 ? 300 : 200;
}

typedef struct {
    char what[32];
    int64_t at, count;
    uint64_t salt;
    double scale;
} Source;

static int32_t open_source(const ForebayOptions *options, void **instance, ForebayError *error) {
    const char *what = options->text(options, "what");
    if (what == NULL || strlen(what) > 31 || strcmp(what, "refuse") == 0)
        return FOREBAY_FAIL(error, FOREBAY_INVALID, "what=%s of %s", what ? what : "", options->json);
    Source *source = calloc(1, sizeof *source);
    strcpy(source->what, what);
    source->count = options->integer(options, "count", -1);
    source->salt = (uint64_t)options->integer(options, "salt", -1);
    source->scale = options->number(options, "scale", -1) + (double)options->integer(options, "missing", 0);
    *instance = source;
    return FOREBAY_OK;
}

static int32_t reset(void *instance, ForebayHost *host, ForebayError *error) {
    (void)host, (void)error;
    Source *source = instance;
    source->at = 0;
    return strcmp(source->what, "end_reset") == 0 ? FOREBAY_END : FOREBAY_OK;
}

static int32_t next(void *instance, ForebayHost *host, ForebayError *error) {
    Source *source = instance;
    if (source->at == source->count)
        return FOREBAY_END;
    int64_t at = source->at++;
    if (strcmp(source->what, "none") == 0)
        return FOREBAY_OK;
    if (strcmp(source->what, "value") == 0)
        return host->put_int(host, FOREBAY_ROOT, 1);
    if (strcmp(source->what, "status") == 0)
        return -1;
    if (strcmp(source->what, "odd") == 0 && at % 2)
        return FOREBAY_FAIL(error, FOREBAY_IO, "sample %d is odd", (int)at);
    if (strcmp(source->what, "columns") == 0)
        columns(host, host->add_field(host, FOREBAY_ROOT, "columns"));
    host->put_float(host, host->add_field(host, FOREBAY_ROOT, at % 3 ? "value" : "other"), (double)at * source->scale);
    host->put_uint(host, host->add_field(host, FOREBAY_ROOT, "seed"), host->seed + host->epoch + source->salt);
    host->set_number(host, (uint64_t)at * 10);
    return FOREBAY_OK;
}

static int32_t state(void *instance, void *bytes, size_t room, size_t *len, ForebayError *error) {
    Source *source = instance;
    *len = strcmp(source->what, "grows") == 0 ? room + 1 : strcmp(source->what, "long") == 0 ? 70000 : sizeof source->at;
    if (strcmp(source->what, "unsaved") == 0)
        return FOREBAY_FAIL(error, FOREBAY_BUG, "lost its place");
    if (room >= *len) {
        memset(bytes, 0, *len);
        memcpy(bytes, &source->at, sizeof source->at);
    }
    return FOREBAY_OK;
}

static int32_t restore(void *instance, const void *bytes, size_t len, ForebayHost *host, ForebayError *error) {
    Source *source = instance;
    (void)host;
    if (len != (strcmp(source->what, "long") == 0 ? 70000 : sizeof source->at))
        return FOREBAY_FAIL(error, FOREBAY_INVALID, "a state of %zu bytes", len);
    memcpy(&source->at, bytes, sizeof source->at);
    return FOREBAY_OK;
}

static int32_t count(void *instance, uint64_t *len) {
    *len = (uint64_t)((Source *)instance)->count;
    return FOREBAY_OK;
}

#ifndef SIZE
#define SIZE sizeof(ForebayDecoder)
#endif
#ifndef NAME
#define NAME "rogue_c"
#endif
#ifndef DECODE
#define DECODE decode
#endif
#ifndef NEXT
#define NEXT next
#endif
#ifndef RESTORE
#define RESTORE restore
#endif
#ifndef SOURCE_SIZE
#define SOURCE_SIZE sizeof(ForebaySource)
#endif
#ifndef LAST
#define LAST NULL
#endif
#ifdef MAJOR
#undef FOREBAY_MAJOR
#define FOREBAY_MAJOR MAJOR
#endif
#ifndef CLASS
#define CLASS "source"
#endif

/* As a later version may have it: what is behind the table is not read. */
static const struct {
    ForebayDecoder decoder;
    void (*more[4])(void);
} DECODER = {{SIZE, NAME, NULL, NULL, probe, DECODE}, {0}};
static const ForebaySource SOURCE = {.size = SOURCE_SIZE, .name = "rogue_source", .open = open_source, .close = free, .reset = reset,
                                     .next = NEXT, .state = state, .restore = RESTORE, .len = count};
static const ForebayDecoder *const DECODERS[] = {&DECODER.decoder, LAST, NULL};
static const ForebaySource *const SOURCES[] = {&SOURCE, NULL};

/* Another turn, so that macros in the manifest stand for what they are. */
#define PLUGIN(...) FOREBAY_PLUGIN(rogue, DECODERS, SOURCES, __VA_ARGS__)

PLUGIN(
    "name": "rogue-c", "version": "0.1.0", "license": "MIT",
    "decoders": [{"name": "rogue_c", "summary": "Does what it is told", "extensions": ["rogue_c", "unsure"]}],
    "pipes": [{"name": "rogue_source", "class": CLASS, "summary": "Does what it is told", "options": [
        {"name": "what", "kind": "str", "default": "well"},
        {"name": "count", "kind": "uint", "default": 7, "doc": "How many samples, \"each\" with a value"},
        {"name": "salt", "kind": "uint", "default": 0},
        {"name": "scale", "kind": "float", "default": 1.5}]}])
