/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * nbdkit-blkmap-filter: verifies every read against a block map before the client gets it, or makes a map
 * of what passes. README.md says how to use it.
 */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-filter.h>

#include <blksum.h>

/* Bytes of verified blocks that are kept, for clients that read parts of blocks. */
#define CACHE_SIZE (16 << 20)

/* The limits of nbdkit. */
#define MAX_PREFERRED (32U << 20)

/* Zeros that begin in a range of this length with other blocks are reported as data. */
#define DATA_LENGTH (64 << 10)

static char *map_path, *make_path, *key_path, *digest;
static int64_t make_block_size;
static bool is_logged_only;
static unsigned char key[4097];
static size_t key_size;

static struct blksum_opts *opts;
static struct blksum_map *map;
static uint64_t block_size;

/* Protects the maker, which begins when the first client connects and the size is known. */
static pthread_mutex_t maker_lock = PTHREAD_MUTEX_INITIALIZER;
static struct blksum_maker *maker;
static uint64_t maker_size;

/* A place for a verified block. */
struct slot {
    pthread_mutex_t lock;
    uint64_t block;
    unsigned char *bytes; /* NULL if there is none */
};
static struct slot *slots;
static size_t slot_count;

struct handle {
    uint64_t size;
    uint32_t maximum; /* bytes that may be read at once */
};

static int fail(struct blksum_error *error)
{
    nbdkit_error("blkmap: %s", blksum_error_message(error));
    blksum_error_free(error);
    return -1;
}

/*
 * The beginning
 */

static int blkmap_config(nbdkit_next_config *next, nbdkit_backend *nxdata, const char *name,
                         const char *value)
{
    char **path = NULL;

    if (strcmp(name, "map") == 0)
        path = &map_path;
    else if (strcmp(name, "map-make") == 0)
        path = &make_path;
    else if (strcmp(name, "map-key-file") == 0)
        path = &key_path;
    if (path != NULL) {
        /* The server changes its folder when it goes into the background. */
        free(*path);
        *path = nbdkit_absolute_path(value);
        return *path == NULL ? -1 : 0;
    }
    if (strcmp(name, "map-digest") == 0) {
        free(digest);
        digest = strdup(value);
        return digest == NULL ? -1 : 0;
    }
    if (strcmp(name, "map-block-size") == 0) {
        make_block_size = nbdkit_parse_size(value);
        return make_block_size < 0 ? -1 : 0;
    }
    if (strcmp(name, "map-policy") == 0) {
        is_logged_only = strcmp(value, "log") == 0;
        if (is_logged_only || strcmp(value, "fail") == 0)
            return 0;
        nbdkit_error("blkmap: map-policy must be fail or log, not %s", value);
        return -1;
    }
    return next(nxdata, name, value);
}

/* The new map is written at the end, which is late for the news that it cannot be. */
static int check_folder(void)
{
    char *folder = strdup(make_path);
    int result = -1;

    if (folder != NULL) {
        /* An absolute path has a slash. */
        strrchr(folder, '/')[1] = '\0';
        result = access(folder, W_OK | X_OK);
    }
    if (result != 0)
        nbdkit_error("blkmap: %s cannot be written: %m", make_path);
    free(folder);
    return result;
}

/* Creates the options and opens the map, for this process alone: what libblksum has belongs to a process. */
static int open_objects(void)
{
    struct blksum_error *error = NULL;

    opts = blksum_opts_new();
    if (digest != NULL && blksum_opts_set(opts, "digest", digest, &error) != 0)
        return fail(error);
    if (make_block_size != 0 &&
        blksum_opts_set_number(opts, "block-size", (uint64_t)make_block_size, &error) != 0)
        return fail(error);
    if (key_path != NULL && blksum_opts_set_bytes(opts, "key", key, key_size, &error) != 0) {
        nbdkit_error("blkmap: %s: %s", key_path, blksum_error_message(error));
        blksum_error_free(error);
        return -1;
    }
    if (map_path != NULL) {
        map = blksum_map_open(map_path, opts, &error);
        if (map == NULL || blksum_map_block_size(map, &block_size, &error) != 0)
            return fail(error);
    } else {
        block_size = make_block_size != 0 ? (uint64_t)make_block_size : 65536;
    }
    return make_path != NULL ? check_folder() : 0;
}

static void close_objects(void)
{
    blksum_map_close(map);
    blksum_opts_free(opts);
    map = NULL;
    opts = NULL;
}

static int blkmap_config_complete(nbdkit_next_config_complete *next, nbdkit_backend *nxdata)
{
    static bool is_complete;

    if (is_complete) {
        nbdkit_error("blkmap: the filter was given twice");
        return -1;
    }
    is_complete = true;
    if (map_path == NULL && make_path == NULL) {
        nbdkit_error("blkmap: map=FILE or map-make=FILE is needed");
        return -1;
    }
    if (make_path == NULL && (digest != NULL || make_block_size != 0)) {
        nbdkit_error("blkmap: map-digest and map-block-size are for a new map: map-make=FILE "
                     "is needed");
        return -1;
    }
    if (map_path != NULL && make_path != NULL && (digest != NULL || make_block_size != 0)) {
        nbdkit_error("blkmap: with map=FILE, a new map has its digest and block size");
        return -1;
    }
    if (key_path != NULL) {
        FILE *file = fopen(key_path, "rb");

        if (file == NULL) {
            nbdkit_error("blkmap: %s: %m", key_path);
            return -1;
        }
        key_size = fread(key, 1, sizeof key, file);
        if (ferror(file)) {
            nbdkit_error("blkmap: %s: %m", key_path);
            fclose(file);
            return -1;
        }
        fclose(file);
    }
    if (make_path != NULL && access(make_path, F_OK) == 0) {
        nbdkit_error("blkmap: %s exists", make_path);
        return -1;
    }
    /* The server may fork later. An error is reported before. */
    if (open_objects() != 0)
        return -1;
    if (map != NULL && make_path != NULL) {
        const char *name = blksum_map_digest_name(map, NULL);

        digest = name != NULL ? strdup(name) : NULL;
        make_block_size = (int64_t)block_size;
    }
    close_objects();
    return next(nxdata);
}

static int blkmap_after_fork(nbdkit_backend *nxdata)
{
    (void)nxdata;
    if (open_objects() != 0)
        return -1;
    slot_count = CACHE_SIZE / block_size;
    if (slot_count < 4)
        slot_count = 4;
    if (slot_count > 4096)
        slot_count = 4096;
    slots = calloc(slot_count, sizeof *slots);
    if (slots == NULL) {
        nbdkit_error("blkmap: %m");
        return -1;
    }
    for (size_t i = 0; i < slot_count; i++)
        pthread_mutex_init(&slots[i].lock, NULL);
    return 0;
}

/* Writes the map if all blocks came. A block can come again until the end, with other content. */
static void write_map(void)
{
    struct blksum_error *error = NULL;
    uint64_t left;

    if (maker == NULL)
        nbdkit_error("blkmap: nothing was read, so %s was not written", make_path);
    else if (blksum_maker_left(maker, &left, &error) != 0)
        fail(error);
    else if (left > 0)
        nbdkit_error("blkmap: %" PRIu64 " blocks were not read, so %s was not written", left,
                     make_path);
    else if (blksum_maker_write(maker, make_path, &error) == 0)
        nbdkit_debug("blkmap: wrote %s", make_path);
    else {
        nbdkit_error("blkmap: no map was written: %s", blksum_error_message(error));
        blksum_error_free(error);
    }
}

/* At the end of the server. */
static void blkmap_cleanup(nbdkit_backend *nxdata)
{
    (void)nxdata;
    if (make_path != NULL)
        write_map();
    blksum_maker_free(maker);
    maker = NULL;
    close_objects();
    for (size_t i = 0; i < slot_count; i++) {
        pthread_mutex_destroy(&slots[i].lock);
        free(slots[i].bytes);
    }
    free(slots);
    slots = NULL;
    slot_count = 0;
}

static void blkmap_unload(void)
{
    char **const texts[] = {&map_path, &make_path, &key_path, &digest};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        free(*texts[i]);
        *texts[i] = NULL;
    }
}

/*
 * Connections
 */

static void *blkmap_open(nbdkit_next_open *next, nbdkit_context *context, int readonly,
                         const char *name, int is_tls)
{
    struct handle *handle;

    (void)readonly;
    (void)is_tls;
    if (next(context, 1, name) == -1)
        return NULL;
    handle = calloc(1, sizeof *handle);
    if (handle == NULL)
        nbdkit_error("blkmap: %m");
    return handle;
}

static void blkmap_close(void *handle)
{
    free(handle);
}

/* Refuses content of another size than the map's. */
static int blkmap_prepare(nbdkit_next *next, void *opened, int readonly)
{
    struct handle *handle = opened;
    struct blksum_error *error = NULL;
    int64_t size = next->get_size(next);
    uint32_t minimum, preferred;
    uint64_t mapped;
    int result = 0;

    (void)readonly;
    if (size < 0 || next->block_size(next, &minimum, &preferred, &handle->maximum) == -1)
        return -1;
    handle->size = (uint64_t)size;
    if (minimum == 0)
        handle->maximum = UINT32_MAX;
    if (map != NULL) {
        if (blksum_map_size(map, &mapped, &error) != 0)
            return fail(error);
        if (mapped != handle->size) {
            nbdkit_error("blkmap: the map is of %" PRIu64 " bytes, and there are %" PRIu64, mapped,
                         handle->size);
            return -1;
        }
    }
    if (make_path == NULL)
        return 0;
    pthread_mutex_lock(&maker_lock);
    if (maker == NULL) {
        maker = blksum_maker_new(handle->size, opts, &error);
        maker_size = handle->size;
        if (maker == NULL)
            result = fail(error);
    }
    if (maker_size != handle->size) {
        nbdkit_error("blkmap: a new map is of %" PRIu64 " bytes, and there are %" PRIu64,
                     maker_size, handle->size);
        result = -1;
    }
    pthread_mutex_unlock(&maker_lock);
    return result;
}

static int64_t blkmap_get_size(nbdkit_next *next, void *opened)
{
    struct handle *handle = opened;
    int64_t size = next->get_size(next);

    if (size >= 0 && (uint64_t)size != handle->size) {
        nbdkit_error("blkmap: the size changed");
        return -1;
    }
    return size;
}

/* Whole blocks are the fastest. */
static int blkmap_block_size(nbdkit_next *next, void *handle, uint32_t *minimum,
                             uint32_t *preferred, uint32_t *maximum)
{
    uint32_t block = block_size < MAX_PREFERRED ? (uint32_t)block_size : MAX_PREFERRED;

    (void)handle;
    if (next->block_size(next, minimum, preferred, maximum) == -1)
        return -1;
    if (*minimum == 0) {
        *minimum = 1;
        *preferred = 4096;
        *maximum = UINT32_MAX;
    }
    if (*preferred < block && block <= *maximum)
        *preferred = block;
    return 0;
}

static int no(nbdkit_next *next, void *handle)
{
    (void)next;
    (void)handle;
    return 0;
}

/*
 * Content
 */

/* What becomes of blocks. */
enum fate {
    REFUSED,
    PASSED,
    VERIFIED, /* passed, and equal to the map's */
};

/* Decides about whole blocks. bytes is NULL for zeros. */
static enum fate judge(const void *bytes, uint64_t length, uint64_t offset, bool is_quiet)
{
    struct blksum_error *error = NULL;
    uint64_t block = offset / block_size;
    int verdict = BLKSUM_EQUAL;

    if (map != NULL) {
        verdict = bytes != NULL
                      ? blksum_map_check(map, bytes, length, offset, &block, &error)
                      : blksum_map_check_zeros(map, offset, length, &block, &error);
        if (verdict == -1) {
            fail(error);
            return REFUSED;
        }
    }
    if (verdict != BLKSUM_EQUAL && is_quiet)
        return REFUSED;
    if (verdict != BLKSUM_EQUAL) {
        nbdkit_error("blkmap: block %" PRIu64 " at offset %" PRIu64 " %s", block,
                     block * block_size,
                     verdict == BLKSUM_DIFFERENT ? "differs from the map" : "is not in the map");
        if (!is_logged_only)
            return REFUSED;
    }
    if (maker != NULL) {
        int added = bytes != NULL ? blksum_maker_add(maker, bytes, length, offset, &error)
                                  : blksum_maker_add_zeros(maker, offset, length, &error);

        /* The client gets its content all the same. */
        if (added != 0)
            fail(error);
    }
    return map != NULL && verdict == BLKSUM_EQUAL ? VERIFIED : PASSED;
}

/* Reads whole blocks, and verifies them in place. Sets err if they are refused. */
static enum fate read_blocks(nbdkit_next *next, const struct handle *handle, unsigned char *buf,
                             uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
    enum fate fate;

    for (uint32_t done = 0; done < count;) {
        uint32_t length = count - done < handle->maximum ? count - done : handle->maximum;

        if (next->pread(next, buf + done, length, offset + done, flags, err) == -1)
            return REFUSED;
        done += length;
    }
    fate = judge(buf, count, offset, false);
    if (fate == REFUSED) {
        /* nbdkit does not send the content of a read that failed. This does not depend on it. */
        memset(buf, 0, count);
        *err = EIO;
    }
    return fate;
}

/*
 * Copies a part of a block. The block is kept for the next part if it equals the map's: anything else can
 * be of another export or of another time.
 */
static int read_part(nbdkit_next *next, const struct handle *handle, unsigned char *buf,
                     uint32_t count, uint64_t offset, uint32_t flags, int *err)
{
    uint64_t block = offset / block_size, start = block * block_size, left = handle->size - start;
    uint32_t length = (uint32_t)(left < block_size ? left : block_size);
    struct slot *slot = &slots[block % slot_count];
    unsigned char *bytes;
    enum fate fate = VERIFIED;

    pthread_mutex_lock(&slot->lock);
    bytes = slot->bytes;
    if (bytes == NULL || slot->block != block) {
        fate = REFUSED;
        slot->bytes = NULL;
        if (bytes == NULL)
            bytes = malloc(block_size);
        if (bytes == NULL)
            *err = ENOMEM;
        else
            fate = read_blocks(next, handle, bytes, length, start, flags, err);
    }
    if (fate != REFUSED)
        memcpy(buf, bytes + (offset - start), count);
    if (fate == VERIFIED) {
        slot->bytes = bytes;
        slot->block = block;
    } else {
        free(bytes);
    }
    pthread_mutex_unlock(&slot->lock);
    return fate == REFUSED ? -1 : 0;
}

static int blkmap_pread(nbdkit_next *next, void *opened, void *buf, uint32_t count,
                        uint64_t offset, uint32_t flags, int *err)
{
    struct handle *handle = opened;
    unsigned char *to = buf;

    while (count > 0) {
        uint64_t within = offset % block_size;
        uint64_t length = count - count % block_size;
        bool is_refused;

        /* The last block of the image may be short. */
        if (offset + count == handle->size)
            length = count;
        if (within != 0 || length == 0) {
            length = block_size - within < count ? block_size - within : count;
            is_refused = read_part(next, handle, to, (uint32_t)length, offset, flags, err) != 0;
        } else {
            is_refused = read_blocks(next, handle, to, (uint32_t)length, offset, flags, err) ==
                         REFUSED;
        }
        if (is_refused)
            return -1;
        to += length;
        offset += length;
        count -= (uint32_t)length;
    }
    return 0;
}

/* Adds whole blocks of zeros, as far as the map has zeros. The others are data, which the client reads. */
static int add_zeros(struct nbdkit_extents *extents, uint64_t from, uint64_t to)
{
    const uint32_t zero = NBDKIT_EXTENT_HOLE | NBDKIT_EXTENT_ZERO;
    const uint64_t data =
        block_size < DATA_LENGTH ? DATA_LENGTH / block_size * block_size : block_size;
    /* A comparison can look at the whole range, though it fails at its first block. */
    uint64_t step = to - from;

    while (from < to) {
        struct blksum_error *error = NULL;
        uint64_t bad = 0, end = to - from < step ? to : from + step, next = end;

        if (map != NULL) {
            int verdict = blksum_map_check_zeros(map, from, end - from, &bad, &error);

            if (verdict == -1)
                return fail(error);
            if (verdict != BLKSUM_EQUAL) {
                end = bad * block_size;
                /* Up to a multiple, so that few ranges are compared. */
                next = (end / data + 1) * data;
                if (next > to)
                    next = to;
                step = data;
            } else if (step < to - from) {
                step *= 2;
            }
        }
        if (from < end) {
            /* With a map, this repeats the comparison of few pages. */
            bool is_zero = judge(NULL, end - from, from, true) != REFUSED;

            if (nbdkit_add_extent(extents, from, end - from, is_zero ? zero : 0) == -1)
                return -1;
        }
        if (end < next && nbdkit_add_extent(extents, end, next - end, 0) == -1)
            return -1;
        from = next;
    }
    return 0;
}

/* That a range is zero is a claim about its content. */
static int blkmap_extents(nbdkit_next *next, void *opened, uint32_t count, uint64_t offset,
                          uint32_t flags, struct nbdkit_extents *extents, int *err)
{
    struct handle *handle = opened;
    struct nbdkit_extents *found = nbdkit_extents_new(offset, handle->size);
    int result = -1;

    if (found == NULL) {
        *err = errno;
        return -1;
    }
    if (next->extents(next, count, offset, flags, found, err) == -1)
        goto out;
    for (size_t i = 0; i < nbdkit_extents_count(found); i++) {
        struct nbdkit_extent it = nbdkit_get_extent(found, i);
        uint64_t end = it.offset + it.length, from, to;

        if (it.offset >= offset + count)
            break;
        if (end > offset + count)
            end = offset + count;
        from = (it.offset + block_size - 1) / block_size * block_size;
        to = end == handle->size ? end : end / block_size * block_size;
        if (!(it.type & NBDKIT_EXTENT_ZERO) || from >= to)
            from = to = end;
        if (it.offset < from && nbdkit_add_extent(extents, it.offset, from - it.offset, 0) == -1)
            goto failed;
        if (add_zeros(extents, from, to) == -1)
            goto failed;
        if (to < end && nbdkit_add_extent(extents, to, end - to, 0) == -1)
            goto failed;
    }
    result = 0;
    goto out;
failed:
    *err = EIO;
out:
    nbdkit_extents_free(found);
    return result;
}

static struct nbdkit_filter filter = {
    .name = "blkmap",
    .longname = "nbdkit blkmap filter",
    .description = "verifies reads against a block map",
    .unload = blkmap_unload,
    .config = blkmap_config,
    .config_complete = blkmap_config_complete,
    .config_help = "map=FILE            Map to verify every read against.\n"
                   "map-policy=fail|log What becomes of a block that differs: an error, or a line.\n"
                   "map-key-file=FILE   Key with which the map must be sealed.\n"
                   "map-make=FILE       New map of the content that passes, if all of it does.\n"
                   "map-digest=NAME     Digest of the new map.\n"
                   "map-block-size=SIZE Size of its blocks.",
    .after_fork = blkmap_after_fork,
    .cleanup = blkmap_cleanup,
    .open = blkmap_open,
    .close = blkmap_close,
    .prepare = blkmap_prepare,
    .get_size = blkmap_get_size,
    .block_size = blkmap_block_size,
    .can_write = no,
    .can_flush = no,
    .can_trim = no,
    .can_zero = no,
    .can_fast_zero = no,
    .can_fua = no,
    .can_cache = no,
    .pread = blkmap_pread,
    .extents = blkmap_extents,
};

NBDKIT_REGISTER_FILTER(filter)
