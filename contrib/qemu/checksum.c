/*
 * qemu-img checksum: the checksum of the content that a guest sees
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Built into QEMU, it is used under MIT, which may be combined with code under
 * version 2 of the GPL.
 *
 * Workers are coroutines. Each takes the next part of the image, reads it, and
 * waits until all parts before it were passed to the hash. Then it lends its
 * buffer to the hash, and takes the next part when the buffer was hashed.
 * Parts that read as zeros are passed on by their length. All of it runs in
 * the thread of the main loop, but for the threads of libblkhash that hash.
 */

#include "qemu/osdep.h"

#include <getopt.h>

#include <blkhash.h>

#include "block/aio.h"
#include "block/block.h"
#include "qapi/error.h"
#include "qemu/coroutine.h"
#include "qemu/error-report.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "qemu/memalign.h"
#include "qemu/option.h"
#include "qemu/units.h"
#include "qom/object_interfaces.h"

#if __has_include("system/block-backend.h")
#include "system/block-backend.h"
#else
#include "sysemu/block-backend.h"
#endif

#if __has_include("qobject/qdict.h")
#include "qobject/qdict.h"
#else
#include "qapi/qmp/qdict.h"
#endif

/* Also the number of buffers, and so of reads and updates in flight. */
#define WORKERS 16

/* A multiple of all common block sizes: whole blocks are not copied. */
#define READ_SIZE (256 * KiB)

/* Hashing the zeros of one part must not hold up the main loop. */
#define ZEROS_SIZE (256 * MiB)

/* As in blksum: an image that has no checksum, and wrong arguments. */
#define STATUS_FAILED 1
#define STATUS_USAGE 2

enum {
    OPTION_OBJECT = 256,
    OPTION_IMAGE_OPTS,
    OPTION_CONSTRUCTION,
    OPTION_TAG,
};

typedef struct Arguments {
    const char *filename;
    const char *format;
    const char *digest;
    const char *construction;
    int flags;
    bool image_opts;
    bool force_share;
    bool progress;
    bool tag;
} Arguments;

/* Part of the image, in one piece either data or zeros. */
typedef struct Part {
    uint64_t turn;
    int64_t offset;
    int64_t bytes;
    bool zeros;
    /* The extent is unknown: a negative errno value. */
    int error;
} Part;

typedef struct ChecksumJob ChecksumJob;

typedef struct Worker {
    ChecksumJob *job;
    void *buf;
    /* Waits for its turn, or for its buffer. */
    Coroutine *waiting;
    int hash_error;
} Worker;

struct ChecksumJob {
    const Arguments *args;
    BlockBackend *blk;
    struct blkhash *hash;
    int hash_fd;
    int64_t size;

    /* Next part. Finding it may yield, so one worker at a time does. */
    CoMutex next_lock;
    int64_t next;
    uint64_t next_turn;
    /* Extent at `next`. */
    int64_t extent_end;
    bool extent_zeros;

    /*
     * Parts are hashed in turns. Turns that were handed out and not reached
     * are consecutive, and of different workers.
     */
    uint64_t turn;
    Worker *turns[WORKERS];

    Worker workers[WORKERS];
    unsigned int running;
    bool failed;
    int percent;
};

static QemuOptsList checksum_source_opts = {
    .name = "checksum-source",
    .implied_opt_name = "file",
    .head = QTAILQ_HEAD_INITIALIZER(checksum_source_opts.head),
    .desc = { { /* any option of the block drivers */ } },
};

static void wake(Worker *w)
{
    Coroutine *co = w->waiting;

    if (co) {
        w->waiting = NULL;
        aio_co_wake(co);
    }
}

static void coroutine_fn wait_for_wake(Worker *w)
{
    w->waiting = qemu_coroutine_self();
    qemu_coroutine_yield();
}

/* Ends the job: workers stop at their next step, without waiting. */
static void stop(ChecksumJob *job)
{
    job->failed = true;
    for (int i = 0; i < WORKERS; i++) {
        wake(&job->workers[i]);
    }
}

static void end_progress(ChecksumJob *job)
{
    if (job->percent >= 0) {
        fputc('\n', stderr);
        job->percent = -1;
    }
}

/* Reports the first error only, on one line. */
static void G_GNUC_PRINTF(3, 4)
fail(ChecksumJob *job, int error, const char *fmt, ...)
{
    g_autofree char *what = NULL;
    va_list ap;

    if (job->failed) {
        return;
    }
    va_start(ap, fmt);
    what = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    end_progress(job);
    error_report("%s: %s: %s", job->args->filename, what, strerror(error));
    stop(job);
}

static void show_progress(ChecksumJob *job, int64_t offset)
{
    int percent = job->size ? 100.0 * offset / job->size : 100;

    if (job->args->progress && percent != job->percent) {
        fprintf(stderr, "    (%d/100%%)\r", percent);
        job->percent = percent;
    }
}

/* Finds the extent at `next`. */
static int coroutine_fn find_extent(ChecksumJob *job)
{
    int64_t bytes = 0;
    int status;

#if QEMU_VERSION_MAJOR >= 8
    status = blk_co_block_status_above(job->blk, NULL, job->next,
                                       job->size - job->next, &bytes,
                                       NULL, NULL);
#else
    status = bdrv_block_status_above(blk_bs(job->blk), NULL, job->next,
                                     job->size - job->next, &bytes,
                                     NULL, NULL);
#endif
    if (status < 0) {
        return status;
    }
    if (bytes <= 0) {
        return -EIO;
    }
    job->extent_end = job->next + MIN(bytes, job->size - job->next);
    job->extent_zeros = status & BDRV_BLOCK_ZERO;
    return 0;
}

/* Returns false at the end of the image, or if the job failed. */
static bool coroutine_fn take_part(ChecksumJob *job, Part *part)
{
    int64_t end;

    QEMU_LOCK_GUARD(&job->next_lock);

    if (job->failed || job->next == job->size) {
        return false;
    }
    *part = (Part) { .offset = job->next };
    if (job->next == job->extent_end) {
        part->error = find_extent(job);
    }
    part->turn = job->next_turn++;
    if (part->error) {
        /* The error is reported after the errors of earlier parts. */
        job->next = job->size;
        return true;
    }
    part->zeros = job->extent_zeros;
    end = QEMU_ALIGN_DOWN(job->next, READ_SIZE) +
          (part->zeros ? ZEROS_SIZE : READ_SIZE);
    end = MIN(end, job->extent_end);
    part->bytes = end - job->next;
    job->next = end;
    return true;
}

/* Returns false if the turn never comes because the job failed. */
static bool coroutine_fn wait_for_turn(Worker *w, uint64_t turn)
{
    ChecksumJob *job = w->job;

    if (!job->failed && job->turn != turn) {
        job->turns[turn % WORKERS] = w;
        wait_for_wake(w);
    }
    return !job->failed;
}

static void pass_turn(ChecksumJob *job)
{
    Worker **next = &job->turns[++job->turn % WORKERS];
    Worker *w = *next;

    if (w) {
        *next = NULL;
        wake(w);
    }
}

static void coroutine_fn hash_part(Worker *w, const Part *part)
{
    ChecksumJob *job = w->job;
    int error;

    if (part->zeros) {
        error = blkhash_zero(job->hash, part->bytes);
    } else {
        error = blkhash_aio_update(job->hash, w->buf, part->bytes, w);
    }
    if (error) {
        fail(job, error, "hash at offset %" PRId64, part->offset);
        return;
    }
    show_progress(job, part->offset + part->bytes);
    pass_turn(job);
    if (!part->zeros) {
        wait_for_wake(w);
        if (w->hash_error) {
            fail(job, w->hash_error, "hash at offset %" PRId64, part->offset);
        }
    }
}

static void coroutine_fn run_worker(void *opaque)
{
    Worker *w = opaque;
    ChecksumJob *job = w->job;
    Part part;

    while (take_part(job, &part)) {
        int ret = part.error;

        if (!ret && !part.zeros) {
            ret = blk_co_pread(job->blk, part.offset, part.bytes, w->buf, 0);
        }
        if (!wait_for_turn(w, part.turn)) {
            break;
        }
        if (ret < 0) {
            fail(job, -ret, "%s at offset %" PRId64,
                 part.error ? "block status" : "read", part.offset);
            break;
        }
        hash_part(w, &part);
    }
    job->running--;
}

/* Called when buffers may have been hashed. */
static void take_completions(void *opaque)
{
    ChecksumJob *job = opaque;
    struct blkhash_completion completions[WORKERS];
    uint64_t value;
    ssize_t len;
    int count;

    do {
        len = read(job->hash_fd, &value, sizeof(value));
    } while (len < 0 && errno == EINTR);

    count = blkhash_aio_completions(job->hash, completions, WORKERS);
    if (count < 0) {
        fail(job, -count, "hash");
    }
    for (int i = 0; i < count; i++) {
        Worker *w = completions[i].user_data;

        w->hash_error = completions[i].error;
        wake(w);
    }
}

static BlockBackend *open_image(const Arguments *args)
{
    QDict *options;
    BlockBackend *blk;
    Error *err = NULL;

    if (args->image_opts) {
        QemuOpts *opts = qemu_opts_parse_noisily(&checksum_source_opts,
                                                 args->filename, true);

        if (!opts) {
            return NULL;
        }
        options = qemu_opts_to_qdict(opts, NULL);
        qemu_opts_del(opts);
    } else {
        options = qdict_new();
        if (args->format) {
            qdict_put_str(options, "driver", args->format);
        }
    }
    if (args->force_share) {
        qdict_put_str(options, BDRV_OPT_FORCE_SHARE, "on");
    }
    blk = blk_new_open(args->image_opts ? NULL : args->filename, NULL,
                       options, args->flags, &err);
    if (!blk) {
        error_reportf_err(err, "Could not open '%s': ", args->filename);
    }
    return blk;
}

/*
 * Returns the tag of blksum: BLKSUM-SHA256-STREAMS4-64K
 *
 * It records the format raw if that was given: a later reader that probes could
 * find the header of another format, written by the guest.
 */
static char *make_tag(const struct blkhash_opts *opts, const Arguments *args)
{
    GString *tag = g_string_new("BLKSUM-");
    g_autofree char *digest = g_ascii_strup(args->digest, -1);
    g_autofree char *construction = g_ascii_strup(args->construction, -1);
    unsigned int streams = blkhash_opts_get_streams(opts);

    g_string_append_printf(tag, "%s-", g_strdelimit(digest, "_", '-'));
    if (streams) {
        g_string_append_printf(tag, "STREAMS%u", streams);
    } else {
        /* FSVERITY and DMVERITY have no dash. */
        for (const char *c = construction; *c; c++) {
            if (*c != '-') {
                g_string_append_c(tag, *c);
            }
        }
    }
    if (strcmp(construction, "LINEAR")) {
        g_string_append_printf(tag, "-%" PRIu32 "K",
                               blkhash_opts_get_block_size(opts) / 1024);
    }
    if (args->format && !strcmp(args->format, "raw")) {
        g_string_append(tag, "/FORMAT=raw");
    }
    return g_string_free(tag, false);
}

/* Aliases are no names: a tag has the name. */
static bool is_digest_name(const char *text)
{
    const char *names[64];
    size_t count = MIN(blkhash_digests(names, ARRAY_SIZE(names)),
                       ARRAY_SIZE(names));
    g_autofree char *wanted = g_ascii_strdown(text, -1);

    g_strdelimit(wanted, "_", '-');
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(names[i], wanted)) {
            return true;
        }
    }
    return false;
}

/* Returns NULL after it has reported what is wrong with the arguments. */
static struct blkhash *new_hash(const Arguments *args, char **tag)
{
    struct blkhash_opts *opts = blkhash_opts_new(args->digest);
    struct blkhash *hash = NULL;

    if (!opts) {
        error_report("Unknown digest '%s'", args->digest);
    } else if (args->tag && !is_digest_name(args->digest)) {
        error_report("--tag needs the name of the digest, not the alias '%s'",
                     args->digest);
    } else if (blkhash_opts_set_construction(opts, args->construction)) {
        error_report("Unknown construction '%s'", args->construction);
    } else {
        blkhash_opts_set_queue_depth(opts, WORKERS);
        blkhash_opts_set_threads(opts, MIN(g_get_num_processors(), WORKERS));
        hash = blkhash_new_opts(opts);
        if (!hash) {
            error_report("Construction '%s' with digest '%s': %s",
                         args->construction, args->digest, strerror(errno));
        } else if (args->tag) {
            *tag = make_tag(opts, args);
        }
    }
    blkhash_opts_free(opts);
    return hash;
}

static bool hash_image(ChecksumJob *job)
{
    qemu_co_mutex_init(&job->next_lock);
    job->running = WORKERS;
    job->hash_fd = blkhash_aio_completion_fd(job->hash);
    if (job->hash_fd < 0) {
        fail(job, -job->hash_fd, "hash");
        return false;
    }
    qemu_set_fd_handler(job->hash_fd, take_completions, NULL, job);

    for (int i = 0; i < WORKERS; i++) {
        Worker *w = &job->workers[i];

        w->job = job;
        w->buf = blk_blockalign(job->blk, READ_SIZE);
        qemu_coroutine_enter(qemu_coroutine_create(run_worker, w));
    }
    while (job->running > 0) {
        main_loop_wait(false);
    }
    end_progress(job);
    qemu_set_fd_handler(job->hash_fd, NULL, NULL, NULL);
    return !job->failed;
}

/* Escapes a name as sha256sum and blksum do. Returns NULL if it needs none. */
static char *escape(const char *name)
{
    GString *escaped;

    if (!name[strcspn(name, "\\\n\r")]) {
        return NULL;
    }
    escaped = g_string_new(NULL);
    for (; *name; name++) {
        switch (*name) {
        case '\\':
            g_string_append(escaped, "\\\\");
            break;
        case '\n':
            g_string_append(escaped, "\\n");
            break;
        case '\r':
            g_string_append(escaped, "\\r");
            break;
        default:
            g_string_append_c(escaped, *name);
        }
    }
    return g_string_free(escaped, false);
}

static bool print_checksum(const char *filename, const char *tag,
                           const unsigned char *md, unsigned int md_len)
{
    g_autofree char *escaped = escape(filename);
    g_autofree char *hex = g_malloc0(2 * md_len + 1);
    const char *name = escaped ?: filename;

    for (unsigned int i = 0; i < md_len; i++) {
        sprintf(hex + 2 * i, "%02x", md[i]);
    }
    if (escaped) {
        putchar('\\');
    }
    if (tag) {
        printf("%s (%s) = %s\n", tag, name, hex);
    } else {
        printf("%s  %s\n", hex, name);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        error_report("write error: %s", strerror(errno));
        return false;
    }
    return true;
}

static void usage(void)
{
    printf("Usage: qemu-img checksum [OPTION]... FILENAME\n"
           "\n"
           "Print the checksum of the content that a guest sees, as blksum "
           "does.\n"
           "\n"
           "  -f, --format FMT\n"
           "     format of the image (default: probing is used)\n"
           "  --image-opts\n"
           "     FILENAME is a list of options (key=value,...), not with -f\n"
           "  -T, --source-cache CACHE\n"
           "     cache mode of the image (default: writeback)\n"
           "  -U, --force-share\n"
           "     open the image even if another process writes to it\n"
           "  --object OBJDEF\n"
           "     define an object, such as a secret\n"
           "  -p, --progress\n"
           "     show progress on standard error\n"
           "  -d, --digest NAME\n"
           "     digest algorithm (default: sha256)\n"
           "  --construction HOW\n"
           "     streams[:N], flat, concat, linear, fs-verity or dm-verity\n"
           "     (default: streams:4)\n"
           "  --tag\n"
           "     state how the checksum was made: TAG (FILENAME) = CHECKSUM\n"
           "  -h, --help\n"
           "     display this help and exit\n");
}

static bool add_object(const char *definition)
{
    Error *err = NULL;

    if (!user_creatable_add_from_str(definition, &err)) {
        if (!err) {
            /* It was a request for help. */
            exit(0);
        }
        error_report_err(err);
        return false;
    }
    return true;
}

/* Returns false after it has reported what is wrong. */
static bool parse_arguments(int argc, char **argv, Arguments *args)
{
    static const struct option long_options[] = {
        { "construction", required_argument, NULL, OPTION_CONSTRUCTION },
        { "digest", required_argument, NULL, 'd' },
        { "force-share", no_argument, NULL, 'U' },
        { "format", required_argument, NULL, 'f' },
        { "help", no_argument, NULL, 'h' },
        { "image-opts", no_argument, NULL, OPTION_IMAGE_OPTS },
        { "object", required_argument, NULL, OPTION_OBJECT },
        { "progress", no_argument, NULL, 'p' },
        { "source-cache", required_argument, NULL, 'T' },
        { "tag", no_argument, NULL, OPTION_TAG },
        { }
    };
    const char *cache = "writeback";
    bool writethrough;
    int option;

    while ((option = getopt_long(argc, argv, ":d:f:hpT:U", long_options,
                                 NULL)) != -1) {
        switch (option) {
        case 'd':
            args->digest = optarg;
            break;
        case 'f':
            args->format = optarg;
            break;
        case 'h':
            usage();
            exit(0);
        case 'p':
            args->progress = true;
            break;
        case 'T':
            cache = optarg;
            break;
        case 'U':
            args->force_share = true;
            break;
        case OPTION_CONSTRUCTION:
            args->construction = optarg;
            break;
        case OPTION_IMAGE_OPTS:
            args->image_opts = true;
            break;
        case OPTION_OBJECT:
            if (!add_object(optarg)) {
                return false;
            }
            break;
        case OPTION_TAG:
            args->tag = true;
            break;
        case ':':
            error_report("Option '%s' needs an argument", argv[optind - 1]);
            return false;
        default:
            error_report("Unknown option '%s'", argv[optind - 1]);
            return false;
        }
    }
    if (optind + 1 != argc) {
        error_report("Expecting one image file name");
        return false;
    }
    if (args->image_opts && args->format) {
        error_report("--image-opts and --format are mutually exclusive");
        return false;
    }
    if (bdrv_parse_cache_mode(cache, &args->flags, &writethrough) < 0) {
        error_report("Invalid cache mode '%s'", cache);
        return false;
    }
    args->filename = argv[optind];
    return true;
}

int qemu_img_checksum(int argc, char **argv);

int qemu_img_checksum(int argc, char **argv)
{
    Arguments args = {
        .digest = "sha256",
        .construction = "streams:4",
    };
    ChecksumJob job = { .args = &args, .percent = -1 };
    unsigned char md[BLKHASH_MAX_MD_SIZE];
    unsigned int md_len;
    g_autofree char *tag = NULL;
    int error, status = STATUS_FAILED;

    if (!parse_arguments(argc, argv, &args)) {
        return STATUS_USAGE;
    }
    job.hash = new_hash(&args, &tag);
    if (!job.hash) {
        return STATUS_USAGE;
    }
    job.blk = open_image(&args);
    if (!job.blk) {
        goto out;
    }
    job.size = blk_getlength(job.blk);
    if (job.size < 0) {
        fail(&job, -job.size, "size");
        goto out;
    }
    if (!hash_image(&job)) {
        goto out;
    }
    error = blkhash_final(job.hash, md, &md_len);
    if (error) {
        fail(&job, error, "checksum");
    } else if (print_checksum(args.filename, tag, md, md_len)) {
        status = 0;
    }

out:
    /* This returns the buffers that the hash still has. */
    blkhash_free(job.hash);
    for (int i = 0; i < WORKERS; i++) {
        qemu_vfree(job.workers[i].buf);
    }
    blk_unref(job.blk);
    return status;
}
