/* Every function of the simple API and of the options, with the arguments that they refuse. */

#include "common.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

/* Checksums of no bytes (docs/reference/constructions.md): sha256 of 8 zero bytes, and of four digests. */
static const char DM_VERITY[] = "90b10db56173e2e7c847f6ff3ed85a3aebb140bc0064ec9a156ae5b2e71db988";
static const char DM_VERITY_SALTED[] =
    "119b959956474bc90bed05f37f63fc757d81f1cb4bcd4483dd80cf844c16b4fc";
static const char FS_VERITY[] = "be54121da3877f8852c65136d731784f134c4dd9d95071502e80d7be9f99b263";
static const char FS_VERITY_SALTED[] =
    "722205492167b4a1cc5c0797c522cbe377e48d80cce2b2fb14303e98d658ad42";
static const char EMPTY_FLAT[] =
    "af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc";
static const char EMPTY_STREAMS4[] =
    "9fb03d22515ca48e57b578de80bbc1e75d5126dbb2de6db177947c3da3b2276f";

static void without_arguments_it_is_flat(void **state)
{
    struct blkhash *h = blkhash_new();

    (void)state;
    assert_non_null(h);
    assert_checksum(h, EMPTY_FLAT);
}

static void by_its_symbol_it_is_flat(void **state)
{
    struct blkhash *(*symbol)(void) = blkhash_new;

    (void)state;
    assert_checksum(symbol(), EMPTY_FLAT);
}

static void with_two_arguments_it_is_streams4(void **state)
{
    struct blkhash *h = blkhash_new(64 * KIB, "sha256");

    (void)state;
    assert_non_null(h);
    assert_checksum(h, EMPTY_STREAMS4);
    h = blkhash_new(MIB >> 8, "blake3");
    assert_non_null(h);
    blkhash_free(h);
}

static void new_refuses(void **state)
{
    static const size_t sizes[] = {0, 1, 256, 511, 513, 65537, 128 * MIB, SIZE_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        errno = 0;
        assert_null(blkhash_new_streams4(sizes[i], "sha256"));
        assert_int_equal(errno, EINVAL);
    }
    errno = 0;
    assert_null(blkhash_new_streams4(4096, NULL));
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_null(blkhash_new_opts(NULL));
    assert_int_equal(errno, EINVAL);
}

static void options_have_defaults(void **state)
{
    struct blkhash_opts *o = blkhash_opts_new("SHA-256");

    (void)state;
    assert_non_null(o);
    assert_string_equal(blkhash_opts_get_digest_name(o), "SHA-256");
    assert_int_equal(blkhash_opts_get_block_size(o), 64 * KIB);
    assert_int_equal(blkhash_opts_get_threads(o), 4);
    assert_int_equal(blkhash_opts_get_queue_depth(o), 0);
    assert_int_equal(blkhash_opts_get_streams(o), 0);
    assert_checksum(blkhash_new_opts(o), EMPTY_FLAT);
    blkhash_opts_free(o);
}

static void options_are_kept(void **state)
{
    char name[] = "blake2b512";
    struct blkhash_opts *o = blkhash_opts_new(name);
    struct blkhash *h;

    (void)state;
    memset(name, 0, sizeof name);
    assert_string_equal(blkhash_opts_get_digest_name(o), "blake2b512");
    assert_int_equal(blkhash_opts_set_block_size(o, 512), 0);
    assert_int_equal(blkhash_opts_get_block_size(o), 512);
    assert_int_equal(blkhash_opts_set_block_size(o, 64 * MIB), 0);
    assert_int_equal(blkhash_opts_get_block_size(o), 64 * MIB);
    assert_int_equal(blkhash_opts_set_threads(o, 255), 0);
    assert_int_equal(blkhash_opts_get_threads(o), 255);
    assert_int_equal(blkhash_opts_set_queue_depth(o, INT_MAX), 0);
    assert_int_equal(blkhash_opts_get_queue_depth(o), INT_MAX);
    assert_int_equal(blkhash_opts_set_streams(o, 32), 0);
    assert_int_equal(blkhash_opts_get_streams(o), 32);
    assert_int_equal(blkhash_opts_set_construction(o, "streams"), 0);
    assert_int_equal(blkhash_opts_get_streams(o), 4);
    assert_int_equal(blkhash_opts_set_construction(o, "streams:128"), 0);
    assert_int_equal(blkhash_opts_get_streams(o), 128);
    assert_int_equal(blkhash_opts_set_construction(o, "linear"), 0);
    assert_int_equal(blkhash_opts_get_streams(o), 0);

    /* A hash does not use its options later. */
    h = blkhash_new_opts(o);
    blkhash_opts_free(o);
    assert_non_null(h);
    assert_int_equal(blkhash_update(h, "abc", 3), 0);
    assert_checksum(h, "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
                       "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923");
}

/* Roots and digests of 8192 zero bytes, computed by veritysetup and fsverity. */
static void verity(void **state)
{
    static const struct {
        const char *construction, *salt, *checksum;
    } cases[] = {
        {"dm-verity", "", DM_VERITY},
        {"dm-verity", "salt", DM_VERITY_SALTED},
        {"fs-verity", "", FS_VERITY},
        {"fs-verity", "salt", FS_VERITY_SALTED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct blkhash_opts *o = blkhash_opts_new("sha256");
        struct blkhash *h;

        assert_int_equal(blkhash_opts_set_construction(o, cases[i].construction), 0);
        assert_int_equal(blkhash_opts_get_block_size(o), 4096);
        assert_int_equal(blkhash_opts_set_salt(o, cases[i].salt, strlen(cases[i].salt)), 0);
        h = blkhash_new_opts(o);
        blkhash_opts_free(o);
        assert_non_null(h);
        assert_int_equal(blkhash_zero(h, 8192), 0);
        assert_checksum(h, cases[i].checksum);
    }
}

static void verity_refuses(void **state)
{
    static const unsigned char salt[257] = {0};
    struct blkhash_opts *o = blkhash_opts_new("crc32c");
    struct blkhash *h;
    unsigned char md[BLKHASH_MAX_MD_SIZE];

    (void)state;
    assert_int_equal(blkhash_opts_set_construction(o, "dm-verity"), 0);
    errno = 0;
    assert_null(blkhash_new_opts(o));
    assert_int_equal(errno, EINVAL);
    blkhash_opts_free(o);

    o = blkhash_opts_new("sha256");
    assert_int_equal(blkhash_opts_set_salt(o, salt, sizeof salt), EINVAL);
    assert_int_equal(blkhash_opts_set_salt(o, NULL, 1), EINVAL);
    assert_int_equal(blkhash_opts_set_salt(o, salt, 33), 0);
    assert_int_equal(blkhash_opts_set_construction(o, "fs-verity"), 0);
    errno = 0;
    assert_null(blkhash_new_opts(o));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(blkhash_opts_set_construction(o, "dm-verity"), 0);
    h = blkhash_new_opts(o);
    assert_non_null(h);
    assert_int_equal(blkhash_update(h, "abc", 3), 0);
    assert_int_equal(blkhash_final(h, md, NULL), EINVAL);
    blkhash_free(h);
    assert_int_equal(blkhash_opts_set_salt(o, NULL, 0), 0);
    assert_int_equal(blkhash_opts_set_construction(o, "flat"), 0);
    assert_checksum(blkhash_new_opts(o), EMPTY_FLAT);
    blkhash_opts_free(o);
}

static void options_refuse_digests(void **state)
{
    static const char *const names[] = {"", "sha", "blake2b", "siphash", "sha256 ", "\xff"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        errno = 0;
        assert_null(blkhash_opts_new(names[i]));
        assert_int_equal(errno, EINVAL);
    }
    errno = 0;
    assert_null(blkhash_opts_new(NULL));
    assert_int_equal(errno, EINVAL);
}

static void options_refuse_values(void **state)
{
    static const uint32_t sizes[] = {0, 1, 2, 256, 511, 3 * 1024, UINT32_MAX, 1U << 27};
    static const char *const names[] = {"", "streams:0", "streams:129", "Flat", "\xff"};
    struct blkhash_opts *o = blkhash_opts_new("sha256");

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        assert_int_equal(blkhash_opts_set_block_size(o, sizes[i]), EINVAL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(blkhash_opts_set_construction(o, names[i]), EINVAL);
    assert_int_equal(blkhash_opts_set_construction(o, NULL), EINVAL);
    assert_int_equal(blkhash_opts_set_threads(o, 0), EINVAL);
    assert_int_equal(blkhash_opts_set_streams(o, 0), EINVAL);
    assert_int_equal(blkhash_opts_set_streams(o, 129), EINVAL);
    assert_int_equal(blkhash_opts_set_queue_depth(o, UINT_MAX), EINVAL);
    assert_int_equal(blkhash_opts_set_queue_depth(o, (unsigned int)INT_MAX + 1), EINVAL);
    assert_int_equal(blkhash_opts_set_implementation(o, NULL), EINVAL);
    assert_int_equal(blkhash_opts_set_implementation(o, "sha256-none"), EINVAL);
    assert_int_equal(blkhash_opts_set_implementation(o, "blake2b512-soft"), EINVAL);

    /* The options are unchanged. */
    assert_int_equal(blkhash_opts_get_block_size(o), 64 * KIB);
    assert_int_equal(blkhash_opts_get_threads(o), 4);
    assert_int_equal(blkhash_opts_get_queue_depth(o), 0);
    assert_checksum(blkhash_new_opts(o), EMPTY_FLAT);
    blkhash_opts_free(o);
}

static void options_may_be_null(void **state)
{
    (void)state;
    assert_int_equal(blkhash_opts_set_block_size(NULL, 4096), EINVAL);
    assert_int_equal(blkhash_opts_set_threads(NULL, 1), EINVAL);
    assert_int_equal(blkhash_opts_set_queue_depth(NULL, 1), EINVAL);
    assert_int_equal(blkhash_opts_set_streams(NULL, 1), EINVAL);
    assert_int_equal(blkhash_opts_set_construction(NULL, "flat"), EINVAL);
    assert_int_equal(blkhash_opts_set_salt(NULL, "", 0), EINVAL);
    assert_int_equal(blkhash_opts_set_implementation(NULL, "sha256-soft"), EINVAL);
    errno = 0;
    assert_null(blkhash_opts_get_digest_name(NULL));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(blkhash_opts_get_block_size(NULL), 0);
    assert_int_equal(blkhash_opts_get_threads(NULL), 0);
    assert_int_equal(blkhash_opts_get_queue_depth(NULL), 0);
    assert_int_equal(blkhash_opts_get_streams(NULL), 0);
    blkhash_opts_free(NULL);
}

static void an_implementation_can_be_chosen(void **state)
{
    struct blkhash_opts *o = blkhash_opts_new("sha256");
    struct blkhash *h;
    char best[HEX_SIZE];

    (void)state;
    h = blkhash_new_opts(o);
    assert_non_null(strstr(blkhash_implementation(h), "sha256-"));
    assert_int_equal(blkhash_update(h, "abc", 3), 0);
    finish(h, best);
    assert_int_equal(blkhash_opts_set_implementation(o, "sha256-soft"), 0);
    h = blkhash_new_opts(o);
    assert_string_equal(blkhash_implementation(h), "sha256-soft");
    assert_int_equal(blkhash_update(h, "abc", 3), 0);
    assert_checksum(h, best);
    blkhash_opts_free(o);
    errno = 0;
    assert_null(blkhash_implementation(NULL));
    assert_int_equal(errno, EINVAL);
}

static void what_the_cpu_lacks_is_not_supported(void **state)
{
    struct blkhash_opts *o = blkhash_opts_new("sha256");
    const char *disabled = getenv("BLKHASH_CPU_DISABLE");

    (void)state;
    if (disabled != NULL && strstr(disabled, "avx512") != NULL)
        assert_int_equal(blkhash_opts_set_implementation(o, "sha256-avx512-x16"), ENOTSUP);
    blkhash_opts_free(o);
}

static void digests_are_listed(void **state)
{
    size_t count = blkhash_digests(NULL, 0);
    const char **names = (const char **)calloc(count + 1, sizeof *names);
    int sha256 = 0;

    (void)state;
    assert_true(count > 20);
    assert_int_equal(blkhash_digests(NULL, 7), count);
    assert_int_equal(blkhash_digests(names, 0), 0);
    assert_null(names[0]);
    assert_int_equal(blkhash_digests(names, 2), 2);
    assert_null(names[2]);
    assert_int_equal(blkhash_digests(names, count + 1), count);
    assert_null(names[count]);
    for (size_t i = 0; i < count; i++) {
        struct blkhash_opts *o = blkhash_opts_new(names[i]);

        assert_non_null(o);
        blkhash_opts_free(o);
        sha256 += strcmp(names[i], "sha256") == 0;
    }
    assert_int_equal(sha256, 1);
    free(names);
}

static void it_has_the_version_of_the_package(void **state)
{
    (void)state;
    assert_string_equal(blkhash_version(), EXPECTED_VERSION);
}

static void nothing_is_a_hash(void **state)
{
    unsigned char md[BLKHASH_MAX_MD_SIZE];

    (void)state;
    assert_int_equal(blkhash_update(NULL, "x", 1), EINVAL);
    assert_int_equal(blkhash_zero(NULL, 1), EINVAL);
    assert_int_equal(blkhash_final(NULL, md, NULL), EINVAL);
    blkhash_free(NULL);
}

static void empty_updates_are_no_updates(void **state)
{
    struct blkhash *h = blkhash_new();

    (void)state;
    assert_int_equal(blkhash_update(h, NULL, 0), 0);
    assert_int_equal(blkhash_update(h, "x", 0), 0);
    assert_int_equal(blkhash_zero(h, 0), 0);
    assert_checksum(h, EMPTY_FLAT);
}

/* After an error every later call fails with the same error. */
static void assert_failed(struct blkhash *h, int error)
{
    unsigned char md[BLKHASH_MAX_MD_SIZE];

    assert_int_equal(blkhash_update(h, "x", 1), error);
    assert_int_equal(blkhash_update(h, NULL, 0), error);
    assert_int_equal(blkhash_zero(h, 1), error);
    assert_int_equal(blkhash_aio_update(h, "x", 1, NULL), error);
    assert_int_equal(blkhash_aio_completions(h, NULL, 0), -error);
    assert_int_equal(blkhash_final(h, md, NULL), error);
    assert_int_equal(blkhash_final(h, md, NULL), error);
    blkhash_free(h);
}

static void the_first_error_stays(void **state)
{
    struct blkhash *h = blkhash_new();

    (void)state;
    assert_int_equal(blkhash_update(h, NULL, 1), EINVAL);
    assert_failed(h, EINVAL);

    h = blkhash_new();
    assert_int_equal(blkhash_aio_update(h, "x", 1, NULL), ENOTSUP);
    assert_failed(h, ENOTSUP);

    h = blkhash_new();
    assert_int_equal(blkhash_final(h, NULL, NULL), EINVAL);
    assert_failed(h, EINVAL);
}

static void sizes_near_the_largest_are_refused_or_hashed(void **state)
{
    struct blkhash *h = blkhash_new();

    (void)state;
    assert_int_equal(blkhash_update(h, "x", SIZE_MAX), EINVAL);
    assert_failed(h, EINVAL);
    h = blkhash_new();
    assert_int_equal(blkhash_update(h, "x", SIZE_MAX / 2 + 1), EINVAL);
    assert_failed(h, EINVAL);

    h = new_hash("null", "flat", 64 * MIB, 2, 0);
    assert_int_equal(blkhash_zero(h, SIZE_MAX), 0);
    assert_int_equal(blkhash_zero(h, 1), EOVERFLOW);
    assert_failed(h, EOVERFLOW);
    h = new_hash("null", "flat", 64 * MIB, 2, 0);
    assert_int_equal(blkhash_zero(h, SIZE_MAX), 0);
    assert_int_equal(blkhash_update(h, "x", 1), EOVERFLOW);
    assert_failed(h, EOVERFLOW);
    h = new_hash("null", "flat", 64 * MIB, 2, 0);
    assert_int_equal(blkhash_zero(h, SIZE_MAX), 0);
    assert_checksum(h, "");
}

static void it_is_finalized_once(void **state)
{
    struct blkhash *h = blkhash_new();
    unsigned char md[BLKHASH_MAX_MD_SIZE];

    (void)state;
    assert_int_equal(blkhash_final(h, md, NULL), 0);
    assert_int_equal(blkhash_final(h, md, NULL), EINVAL);
    assert_int_equal(blkhash_final(h, NULL, NULL), EINVAL);
    assert_int_equal(blkhash_update(h, "x", 1), EINVAL);
    assert_int_equal(blkhash_zero(h, 1), EINVAL);
    blkhash_free(h);
}

static void only_the_digest_is_written(void **state)
{
    struct blkhash *h = blkhash_new(4096, "crc32");
    unsigned char md[BLKHASH_MAX_MD_SIZE];
    unsigned int len;

    (void)state;
    memset(md, 0xa5, sizeof md);
    assert_int_equal(blkhash_final(h, md, &len), 0);
    assert_int_equal(len, 4);
    for (size_t i = 4; i < sizeof md; i++)
        assert_int_equal(md[i], 0xa5);
    blkhash_free(h);
}

/* The same content gives one value for any split, alignment and number of threads. */
static void the_value_depends_on_the_content_alone(void **state)
{
    const size_t size = is_slow() ? 3 * MIB : 9 * MIB + 12345;
    static const size_t cuts[] = {511, 4096, 65537, 256 * 1024, 5 * 1024 * 1024, SIZE_MAX};
    static const uint8_t threads[] = {1, 2, 5, 64};
    static const char *const constructions[] = {"flat", "streams:4", "linear"};
    unsigned char *buf = allocate(size + 64);
    char expected[HEX_SIZE];

    (void)state;
    for (size_t c = 0; c < sizeof constructions / sizeof constructions[0]; c++) {
        struct blkhash *h = new_hash("blake3", constructions[c], 4096, 1, 0);

        count251(buf, size, 0);
        memset(buf + size / 4, 0, size / 4);
        assert_int_equal(blkhash_update(h, buf, size), 0);
        finish(h, expected);
        for (size_t t = 0; t < sizeof threads; t++) {
            for (size_t i = is_slow() ? 2 : 0; i < sizeof cuts / sizeof cuts[0]; i++) {
                size_t shift = (7 * i + 13 * t) % 64;
                unsigned char *content = buf + shift;

                count251(content, size, 0);
                memset(content + size / 4, 0, size / 4);
                h = new_hash("blake3", constructions[c], 4096, threads[t], 0);
                for (size_t start = 0; start < size;) {
                    size_t len = size - start < cuts[i] ? size - start : cuts[i];

                    if (start >= size / 4 && start + len <= size / 2 && i % 2 == 0)
                        assert_int_equal(blkhash_zero(h, len), 0);
                    else
                        assert_int_equal(blkhash_update(h, content + start, len), 0);
                    start += len;
                }
                /* The library must not use the buffer any more. */
                memset(content, 0xff, size);
                assert_checksum(h, expected);
            }
        }
    }
    free(buf);
}

static void every_alignment_is_the_same(void **state)
{
    const size_t size = 200 * KIB + 77;
    unsigned char *buf = allocate(size + 64);
    char expected[HEX_SIZE];

    (void)state;
    for (size_t shift = 0; shift < (is_slow() ? 5 : 64); shift++) {
        struct blkhash *h = new_hash("sha256", "streams:4", 4096, 2, 0);

        count251(buf + shift, size, 0);
        /* Two calls, so that blocks begin at any offset in the second buffer. */
        assert_int_equal(blkhash_update(h, buf + shift, shift), 0);
        assert_int_equal(blkhash_update(h, buf + 2 * shift, size - shift), 0);
        if (shift == 0)
            finish(h, expected);
        else
            assert_checksum(h, expected);
    }
    free(buf);
}

struct shared {
    struct blkhash *h;
    const unsigned char *block;
};

static void *update_from_thread(void *argument)
{
    struct shared *shared = (struct shared *)argument;

    for (int i = 0; i < 64; i++) {
        if (blkhash_update(shared->h, shared->block, 4096) != 0)
            return shared;
    }
    return NULL;
}

/* Concurrent calls wait for each other. All blocks are equal, so their order does not matter. */
static void threads_may_share_a_hash(void **state)
{
    unsigned char block[4096];
    struct shared shared;
    pthread_t threads[4];
    struct blkhash *h;
    char expected[HEX_SIZE];

    (void)state;
    memset(block, 'A', sizeof block);
    h = new_hash("sha256", "flat", 4096, 2, 0);
    for (int i = 0; i < 4 * 64; i++)
        assert_int_equal(blkhash_update(h, block, sizeof block), 0);
    finish(h, expected);

    shared.h = new_hash("sha256", "flat", 4096, 2, 0);
    shared.block = block;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, update_from_thread, &shared), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;

        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_checksum(shared.h, expected);
}

static void a_child_cannot_use_the_hash(void **state)
{
    unsigned char *buf = allocate(4 * MIB);
    struct blkhash *h = blkhash_new();
    char before[HEX_SIZE];
    int status;
    pid_t child;

    (void)state;
    memset(buf, 'A', 4 * MIB);
    assert_int_equal(blkhash_update(h, buf, 3 * MIB), 0);
    child = fork();
    if (child == 0) {
        unsigned char md[BLKHASH_MAX_MD_SIZE];
        struct blkhash *own;
        int right = blkhash_update(h, buf, 1) == EINVAL && blkhash_zero(h, 1) == EINVAL &&
                    blkhash_final(h, md, NULL) == EINVAL;

        blkhash_free(h);
        own = blkhash_new();
        right = right && blkhash_update(own, buf, 4 * MIB) == 0 &&
                blkhash_final(own, md, NULL) == 0;
        blkhash_free(own);
        /* The parent's hash leaks here by design. Exit without a leak check. */
        if (right)
            raise(SIGKILL);
        _exit(1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);

    /* The parent can still use the hash. */
    assert_int_equal(blkhash_update(h, buf + 3 * MIB, MIB), 0);
    finish(h, before);
    h = blkhash_new();
    assert_int_equal(blkhash_update(h, buf, 4 * MIB), 0);
    assert_checksum(h, before);
    free(buf);
}

static const unsigned char some_content[65536] = {1};

static void give_up(int signal)
{
    (void)signal;
    _exit(3);
}

/* Runs as the first process of a PID namespace and calls itself in another: both have the ID 1. */
static int first_of_a_namespace(struct blkhash *parents)
{
    unsigned char md[BLKHASH_MAX_MD_SIZE];
    struct blkhash *h;
    int right, status;
    pid_t child;

    /* unshare() must come before the hash has threads. */
    if (parents == NULL && unshare(CLONE_NEWPID) != 0)
        return 2;
    h = new_hash("sha256", "flat", 4096, 2, 4);
    for (int i = 0; i < 64; i++) {
        if (blkhash_update(h, some_content, sizeof some_content) != 0)
            return 1;
    }
    right = parents == NULL ||
            (getpid() == 1 && blkhash_update(parents, "x", 1) == EINVAL &&
             blkhash_zero(parents, 1) == EINVAL && blkhash_final(parents, md, NULL) == EINVAL &&
             blkhash_aio_update(parents, "x", 1, NULL) == EINVAL);
    if (parents != NULL)
        blkhash_free(parents);
    if (parents == NULL) {
        child = fork();
        if (child == 0) {
            /* A wait for threads that do not exist would never end. */
            signal(SIGALRM, give_up);
            alarm(60);
            _exit(first_of_a_namespace(h));
        }
        right = right && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                WEXITSTATUS(status) == 0;
    }
    right = right && blkhash_final(h, md, NULL) == 0;
    blkhash_free(h);
    return right ? 0 : 1;
}

static void a_child_with_the_number_of_its_parent_cannot_use_the_hash(void **state)
{
    int status;
    pid_t child;

    (void)state;
    /* The parent's hash leaks in the child by design. Skip this under a leak checker. */
    if (is_slow())
        skip();
    child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWPID) != 0)
            _exit(2);
        child = fork();
        if (child == 0)
            _exit(first_of_a_namespace(NULL));
        _exit(waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2 && getenv("CI") == NULL) {
        fprintf(stderr, "skipped: PID namespaces need root\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

static unsigned int count_threads(void)
{
    char line[256];
    unsigned int count = 0;
    FILE *file = fopen("/proc/self/status", "r");

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "Threads: %u", &count) == 1)
            break;
    }
    fclose(file);
    return count;
}

/* Number of threads before there was a hash. */
static unsigned int threads_at_start;

/*
 * Waits until there are this many threads. The kernel wakes a thread that joins another one a moment
 * before it removes the other one from this number.
 */
static void wait_for_threads(unsigned int count)
{
    const struct timespec moment = {0, 1000000};

    for (int i = 0; i < 10000 && count_threads() != count; i++)
        nanosleep(&moment, NULL);
    assert_int_equal(count_threads(), count);
}

static void no_thread_outlives_the_hash(void **state)
{
    unsigned char *buf = allocate(8 * MIB);
    unsigned int before = threads_at_start;
    struct blkhash *h;

    (void)state;
    memset(buf, 'A', 8 * MIB);
    wait_for_threads(before);
    h = new_hash("sha256", "flat", 4096, 4, 0);
    assert_int_equal(count_threads(), before);
    assert_int_equal(blkhash_update(h, buf, 8 * MIB), 0);
    assert_true(count_threads() > before);
    assert_true(count_threads() <= before + 4);
    blkhash_free(h);
    wait_for_threads(before);

    /* With one thread the caller hashes, and no other thread starts. */
    h = new_hash("sha256", "flat", 4096, 1, 0);
    assert_int_equal(blkhash_update(h, buf, 8 * MIB), 0);
    assert_int_equal(count_threads(), before);
    blkhash_free(h);
    free(buf);
}

static volatile sig_atomic_t signals_elsewhere;
static pthread_t main_thread;

static void note_signal(int number)
{
    (void)number;
    if (!pthread_equal(pthread_self(), main_thread))
        signals_elsewhere = 1;
}

static void its_threads_take_no_signals(void **state)
{
    unsigned char *buf = allocate(8 * MIB);
    struct blkhash *h = new_hash("sha256", "flat", 4096, 4, 0);
    sigset_t blocked, before;

    (void)state;
    main_thread = pthread_self();
    memset(buf, 'A', 8 * MIB);
    assert_true(signal(SIGUSR1, note_signal) != SIG_ERR);
    assert_int_equal(blkhash_update(h, buf, 8 * MIB), 0);
    /* The signal is blocked here, so any other thread that does not block it would get it. */
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &blocked, &before), 0);
    assert_int_equal(sigismember(&before, SIGUSR1), 0);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    assert_int_equal(blkhash_update(h, buf, 8 * MIB), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    assert_int_equal(signals_elsewhere, 0);
    signal(SIGUSR1, SIG_DFL);
    blkhash_free(h);
    free(buf);
}

static void *end_at_once(void *arg)
{
    return arg;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_arguments_it_is_flat),
        cmocka_unit_test(by_its_symbol_it_is_flat),
        cmocka_unit_test(with_two_arguments_it_is_streams4),
        cmocka_unit_test(new_refuses),
        cmocka_unit_test(options_have_defaults),
        cmocka_unit_test(options_are_kept),
        cmocka_unit_test(verity),
        cmocka_unit_test(verity_refuses),
        cmocka_unit_test(options_refuse_digests),
        cmocka_unit_test(options_refuse_values),
        cmocka_unit_test(options_may_be_null),
        cmocka_unit_test(an_implementation_can_be_chosen),
        cmocka_unit_test(what_the_cpu_lacks_is_not_supported),
        cmocka_unit_test(digests_are_listed),
        cmocka_unit_test(it_has_the_version_of_the_package),
        cmocka_unit_test(nothing_is_a_hash),
        cmocka_unit_test(empty_updates_are_no_updates),
        cmocka_unit_test(the_first_error_stays),
        cmocka_unit_test(sizes_near_the_largest_are_refused_or_hashed),
        cmocka_unit_test(it_is_finalized_once),
        cmocka_unit_test(only_the_digest_is_written),
        cmocka_unit_test(the_value_depends_on_the_content_alone),
        cmocka_unit_test(every_alignment_is_the_same),
        cmocka_unit_test(threads_may_share_a_hash),
        cmocka_unit_test(a_child_cannot_use_the_hash),
        cmocka_unit_test(a_child_with_the_number_of_its_parent_cannot_use_the_hash),
        cmocka_unit_test(no_thread_outlives_the_hash),
        cmocka_unit_test(its_threads_take_no_signals),
    };

    /* With the first thread, ThreadSanitizer starts its own one. A thread that ended is counted a little longer. */
    pthread_t first;
    if (pthread_create(&first, NULL, end_at_once, NULL) != 0 || pthread_join(first, NULL) != 0) {
        return 1;
    }
    usleep(50 * 1000);
    threads_at_start = count_threads();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
