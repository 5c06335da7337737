/* Reads a pipe or file while it hashes what was read before: hash-async < FILE */

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <blkhash.h>

#define DEPTH 16
#define SIZE (256 * 1024)

static unsigned char buffers[DEPTH][SIZE];
static void *unused[DEPTH];
static int unused_count;

static struct blkhash *new_hash(void)
{
    struct blkhash_opts *o = blkhash_opts_new("sha256");
    struct blkhash *h = NULL;

    if (o != NULL && blkhash_opts_set_queue_depth(o, DEPTH) == 0)
        h = blkhash_new_opts(o);
    blkhash_opts_free(o);
    return h;
}

/* Takes back the buffers that were hashed. */
static int complete(struct blkhash *h)
{
    struct blkhash_completion completions[DEPTH];
    uint64_t value;
    int count;

    if (read(blkhash_aio_completion_fd(h), &value, sizeof value) < 0 && errno != EAGAIN)
        return errno;
    count = blkhash_aio_completions(h, completions, DEPTH);
    if (count < 0)
        return -count;
    for (int i = 0; i < count; i++) {
        if (completions[i].error)
            return completions[i].error;
        unused[unused_count++] = completions[i].user_data;
    }
    return 0;
}

/* Reads into a buffer until it is full or the input ends, and lends it to the hash. */
static int read_and_hash(struct blkhash *h, int *is_end)
{
    unsigned char *buf = unused[--unused_count];
    size_t len = 0;

    while (len < SIZE && !*is_end) {
        ssize_t count = read(STDIN_FILENO, buf + len, SIZE - len);

        if (count < 0)
            return errno;
        *is_end = count == 0;
        len += (size_t)count;
    }
    return blkhash_aio_update(h, buf, len, buf);
}

int main(void)
{
    unsigned char md[BLKHASH_MAX_MD_SIZE];
    unsigned int len;
    struct blkhash *h = new_hash();
    int err = h == NULL ? errno : 0;
    int is_end = 0;

    for (int i = 0; i < DEPTH; i++)
        unused[unused_count++] = buffers[i];

    while (!err && (!is_end || unused_count < DEPTH)) {
        int can_read = !is_end && unused_count > 0;
        struct pollfd fds[2] = {
            {.fd = blkhash_aio_completion_fd(h), .events = POLLIN},
            {.fd = can_read ? STDIN_FILENO : -1, .events = POLLIN},
        };

        if (poll(fds, 2, -1) < 0)
            err = errno;
        if (!err && fds[0].revents)
            err = complete(h);
        if (!err && fds[1].revents)
            err = read_and_hash(h, &is_end);
    }
    if (!err)
        err = blkhash_final(h, md, &len);
    if (err) {
        fprintf(stderr, "hash-async: %s\n", strerror(err));
        return 1;
    }
    for (unsigned int i = 0; i < len; i++)
        printf("%02x", md[i]);
    printf("  -\n");

    blkhash_free(h);
    return 0;
}
