/* The asynchronous API: values, completions, limits, and updates without copies. */

#include "common.h"

#include <fcntl.h>
#include <sys/mman.h>

struct request {
    unsigned char *buf;
    size_t size;
    int in_flight;
};

/* Waits for completions, marks their requests as done and returns their number. */
static unsigned int reap(struct blkhash *h)
{
    struct blkhash_completion completions[8];
    unsigned int all = 0;
    int count;

    count = wait_for_completions(h, completions, 8);
    while (count > 0) {
        for (int i = 0; i < count; i++) {
            struct request *request = (struct request *)completions[i].user_data;

            assert_int_equal(completions[i].error, 0);
            assert_int_equal(request->in_flight, 1);
            request->in_flight = 0;
            /* The buffer is the caller's again. */
            memset(request->buf, 0xff, request->size);
        }
        all += (unsigned int)count;
        count = blkhash_aio_completions(h, completions, 8);
    }
    assert_int_equal(count, 0);
    return all;
}

/* Hashes content in updates of `cut` bytes, of which some are synchronous and some are zeros. */
static void hash_content(struct blkhash *h, const unsigned char *content, size_t size, size_t cut,
                         unsigned int depth)
{
    struct request *requests = (struct request *)calloc(depth, sizeof *requests);
    unsigned int in_flight = 0;
    size_t number = 0;

    assert_non_null(requests);
    for (unsigned int i = 0; i < depth; i++)
        requests[i].buf = allocate(cut);
    for (size_t start = 0; start < size; number++) {
        size_t len = size - start < cut ? size - start : cut;
        struct request *request = requests;

        if (number % 5 == 4) {
            assert_int_equal(blkhash_update(h, content + start, len), 0);
        } else if (number % 7 == 6) {
            assert_int_equal(blkhash_zero(h, len), 0);
        } else {
            if (in_flight == depth)
                assert_int_equal(blkhash_aio_update(h, content, 1, NULL), EAGAIN);
            /* A wake-up may be for completions that were already fetched with earlier ones. */
            while (in_flight == depth)
                in_flight -= reap(h);
            while (request->in_flight)
                request++;
            memcpy(request->buf, content + start, len);
            request->size = len;
            request->in_flight = 1;
            assert_int_equal(blkhash_aio_update(h, request->buf, len, request), 0);
            in_flight++;
        }
        start += len;
    }
    while (in_flight > 0)
        in_flight -= reap(h);
    for (unsigned int i = 0; i < depth; i++)
        free(requests[i].buf);
    free(requests);
}

static void it_is_the_value_of_the_simple_api(void **state)
{
    static const char *const constructions[] = {"flat", "streams:4", "linear"};
    static const unsigned int depths[] = {1, 8, 64};
    /* Blocks of 8 MiB are not collected for several threads. */
    static const uint32_t block_sizes[] = {4096, 65536, 8 * 1024 * 1024};
    static const size_t cuts[] = {100 * 1024, 256 * 1024, 64 * 1024, 3 * 1024 * 1024, 4096};
    const size_t size = is_slow() ? 3 * MIB : 11 * MIB + 333;
    unsigned char *content = allocate(size);

    (void)state;
    for (size_t k = 0; k < sizeof cuts / sizeof cuts[0]; k++) {
        count251(content, size, 0);
        for (size_t number = 6; number * cuts[k] < size; number += 7) {
            size_t start = number * cuts[k];

            if (number % 5 != 4)
                memset(content + start, 0, size - start < cuts[k] ? size - start : cuts[k]);
        }
        for (size_t c = 0; c < 3; c++) {
            for (size_t b = 0; b < sizeof block_sizes / sizeof block_sizes[0]; b++) {
                uint32_t block_size = block_sizes[b];
                char expected[HEX_SIZE];
                struct blkhash *h = new_hash("sha256", constructions[c], block_size, 1, 0);

                assert_int_equal(blkhash_update(h, content, size), 0);
                finish(h, expected);
                for (size_t d = 0; d < 3; d++) {
                    uint8_t threads = (uint8_t)(1 + (c + d + k) % 4);

                    if (is_slow() && (c + d + k) % 5 != 0)
                        continue;
                    h = new_hash("sha256", constructions[c], block_size, threads, depths[d]);
                    hash_content(h, content, size, cuts[k], depths[d]);
                    assert_checksum(h, expected);
                }
            }
        }
    }
    free(content);
}

static void without_a_depth_it_is_not_supported(void **state)
{
    struct blkhash_completion completion;
    struct blkhash *h = blkhash_new();

    (void)state;
    assert_int_equal(blkhash_aio_completion_fd(h), -ENOTSUP);
    assert_int_equal(blkhash_aio_completions(h, &completion, 1), -ENOTSUP);
    assert_int_equal(blkhash_aio_update(h, "x", 1, NULL), ENOTSUP);
    blkhash_free(h);
}

static void nothing_is_refused(void **state)
{
    struct blkhash_completion completion;
    struct blkhash *h = new_hash("sha256", "flat", 4096, 2, 4);

    (void)state;
    assert_int_equal(blkhash_aio_update(NULL, "x", 1, NULL), EINVAL);
    assert_int_equal(blkhash_aio_completion_fd(NULL), -EINVAL);
    assert_int_equal(blkhash_aio_completions(NULL, &completion, 1), -EINVAL);
    assert_int_equal(blkhash_aio_completions(h, NULL, 1), -EINVAL);
    assert_int_equal(blkhash_aio_completions(h, &completion, 0), 0);
    assert_int_equal(blkhash_aio_completions(h, &completion, 1), 0);
    assert_int_equal(blkhash_aio_update(h, NULL, 1, NULL), EINVAL);
    assert_int_equal(blkhash_aio_completions(h, &completion, 1), -EINVAL);
    blkhash_free(h);
}

static void empty_updates_complete(void **state)
{
    struct blkhash_completion completions[2];
    struct blkhash *h = new_hash("sha256", "flat", 4096, 2, 2);

    (void)state;
    assert_int_equal(blkhash_aio_update(h, NULL, 0, h), 0);
    assert_int_equal(blkhash_aio_update(h, "x", 0, h), 0);
    assert_int_equal(blkhash_aio_update(h, "x", 0, h), EAGAIN);
    assert_int_equal(wait_for_completions(h, completions, 2), 2);
    assert_ptr_equal(completions[1].user_data, h);
    assert_checksum(h, "af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc");
}

static void what_is_left_is_signalled_again(void **state)
{
    struct blkhash_completion completion;
    struct blkhash *h = new_hash("sha256", "flat", 4096, 2, 8);
    int flags = fcntl(blkhash_aio_completion_fd(h), F_GETFL);

    (void)state;
    assert_true((flags & O_NONBLOCK) != 0);
    assert_true((fcntl(blkhash_aio_completion_fd(h), F_GETFD) & FD_CLOEXEC) != 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(blkhash_aio_update(h, "x", 1, NULL), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(wait_for_completions(h, &completion, 1), 1);
    assert_int_equal(blkhash_aio_completions(h, &completion, 1), 0);
    blkhash_free(h);
}

static void completions_can_be_fetched_after_the_end(void **state)
{
    struct blkhash_completion completions[4];
    unsigned char md[BLKHASH_MAX_MD_SIZE];
    unsigned char *buf = allocate(4 * MIB);
    struct blkhash *h = new_hash("sha256", "flat", 4096, 2, 4);

    (void)state;
    memset(buf, 'A', 4 * MIB);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(blkhash_aio_update(h, buf + i * MIB, MIB, buf + i), 0);
    assert_int_equal(blkhash_final(h, md, NULL), 0);
    /* blkhash_final() waits for all updates. */
    assert_int_equal(blkhash_aio_completions(h, completions, 4), 4);
    assert_int_equal(blkhash_aio_update(h, buf, 1, NULL), EINVAL);
    blkhash_free(h);
    free(buf);
}

/* Freeing the hash returns all lent buffers, so they can be unmapped at once. */
static void buffers_are_free_with_the_hash(void **state)
{
    const size_t size = 16 * MIB;

    (void)state;
    for (int i = 0; i < (is_slow() ? 2 : 20); i++) {
        unsigned char *buf = (unsigned char *)mmap(NULL, size, PROT_READ | PROT_WRITE,
                                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct blkhash *h = new_hash("sha256", "flat", 4096, 2, 64);

        assert_true(buf != MAP_FAILED);
        memset(buf, i + 1, size);
        for (size_t start = 0; start < size; start += size / 64)
            assert_int_equal(blkhash_aio_update(h, buf + start, size / 64, NULL), 0);
        blkhash_free(h);
        assert_int_equal(munmap(buf, size), 0);
    }
}

/* Whole blocks are hashed in the caller's memory. */
static void aligned_buffers_are_not_copied(void **state)
{
    const size_t size = 256 * KIB;
    struct blkhash_completion completion;
    unsigned char *buf = allocate(size);
    struct blkhash *h = new_hash("sha256", "flat", 64 * KIB, 2, 1);
    long before = 0, after;
    FILE *statm;

    (void)state;
    memset(buf, 'A', size);
    /* A chunk for copied bytes would take 1 MiB. */
    for (int i = 0; i < 64; i++) {
        assert_int_equal(blkhash_aio_update(h, buf, size, buf), 0);
        assert_int_equal(wait_for_completions(h, &completion, 1), 1);
        if (i == 1) {
            statm = fopen("/proc/self/statm", "r");
            assert_int_equal(fscanf(statm, "%*d %ld", &before), 1);
            fclose(statm);
        }
    }
    statm = fopen("/proc/self/statm", "r");
    assert_int_equal(fscanf(statm, "%*d %ld", &after), 1);
    fclose(statm);
    if (!is_slow())
        assert_true((after - before) * 4096 < (long)(256 * KIB));
    blkhash_free(h);
    free(buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_value_of_the_simple_api),
        cmocka_unit_test(without_a_depth_it_is_not_supported),
        cmocka_unit_test(nothing_is_refused),
        cmocka_unit_test(empty_updates_complete),
        cmocka_unit_test(what_is_left_is_signalled_again),
        cmocka_unit_test(completions_can_be_fetched_after_the_end),
        cmocka_unit_test(buffers_are_free_with_the_hash),
        cmocka_unit_test(aligned_buffers_are_not_copied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
