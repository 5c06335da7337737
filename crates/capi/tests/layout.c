/* The types of the released ABI. The test is that this compiles. */

#include <stddef.h>
#include <stdint.h>

#include <blkhash.h>

#define ASSERT(name, condition) typedef char name[(condition) ? 1 : -1]

ASSERT(md_size, BLKHASH_MAX_MD_SIZE == 64);
ASSERT(completion_size, sizeof(struct blkhash_completion) == 2 * sizeof(void *));
ASSERT(user_data_first, offsetof(struct blkhash_completion, user_data) == 0);
ASSERT(error_second, offsetof(struct blkhash_completion, error) == sizeof(void *));
ASSERT(error_is_int, sizeof(((struct blkhash_completion *)0)->error) == sizeof(int));

/* The types that programs were built with. The compiler rejects a function of another type. */
struct blkhash *(*new_default)(void) = blkhash_new;
struct blkhash *(*new_opts)(const struct blkhash_opts *) = blkhash_new_opts;
int (*update)(struct blkhash *, const void *, size_t) = blkhash_update;
int (*zero)(struct blkhash *, size_t) = blkhash_zero;
int (*final)(struct blkhash *, unsigned char *, unsigned int *) = blkhash_final;
void (*free_hash)(struct blkhash *) = blkhash_free;
size_t (*digests)(const char **, size_t) = blkhash_digests;
int (*aio_update)(struct blkhash *, const void *, size_t, void *) = blkhash_aio_update;
int (*aio_completion_fd)(struct blkhash *) = blkhash_aio_completion_fd;
int (*aio_completions)(struct blkhash *, struct blkhash_completion *, unsigned) =
    blkhash_aio_completions;
struct blkhash_opts *(*opts_new)(const char *) = blkhash_opts_new;
void (*opts_free)(struct blkhash_opts *) = blkhash_opts_free;
int (*set_block_size)(struct blkhash_opts *, uint32_t) = blkhash_opts_set_block_size;
int (*set_threads)(struct blkhash_opts *, uint8_t) = blkhash_opts_set_threads;
int (*set_queue_depth)(struct blkhash_opts *, unsigned) = blkhash_opts_set_queue_depth;
int (*set_streams)(struct blkhash_opts *, uint8_t) = blkhash_opts_set_streams;
const char *(*get_digest_name)(const struct blkhash_opts *) = blkhash_opts_get_digest_name;
uint32_t (*get_block_size)(const struct blkhash_opts *) = blkhash_opts_get_block_size;
uint8_t (*get_threads)(const struct blkhash_opts *) = blkhash_opts_get_threads;
unsigned (*get_queue_depth)(const struct blkhash_opts *) = blkhash_opts_get_queue_depth;
uint8_t (*get_streams)(const struct blkhash_opts *) = blkhash_opts_get_streams;

int main(void)
{
    return 0;
}
