/* Prints the checksum that blksum prints, without reading holes: hash-holes FILE */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <blkhash.h>

static struct blkhash *new_hash(void)
{
    struct blkhash_opts *o = blkhash_opts_new("sha256");
    struct blkhash *h = NULL;

    if (o != NULL && blkhash_opts_set_construction(o, "streams:4") == 0 &&
        blkhash_opts_set_threads(o, 2) == 0)
        h = blkhash_new_opts(o);
    blkhash_opts_free(o);
    return h;
}

/* Hashes the data from start to end. */
static int hash_data(struct blkhash *h, int fd, off_t start, off_t end)
{
    static unsigned char buf[1024 * 1024];

    while (start < end) {
        size_t want = end - start < (off_t)sizeof buf ? (size_t)(end - start) : sizeof buf;
        ssize_t count = pread(fd, buf, want, start);

        if (count <= 0)
            return count < 0 ? errno : EIO;
        blkhash_update(h, buf, (size_t)count);
        start += count;
    }
    return 0;
}

int main(int argc, char **argv)
{
    unsigned char md[BLKHASH_MAX_MD_SIZE];
    unsigned int len;
    struct blkhash *h = new_hash();
    int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    off_t data, hole = 0;
    int err = h == NULL || size < 0 ? errno : 0;

    while (!err && hole < size) {
        data = lseek(fd, hole, SEEK_DATA);
        if (data < 0 && errno != ENXIO) {
            err = errno;
            break;
        }
        if (data < 0 || data > size)
            data = size;
        blkhash_zero(h, (size_t)(data - hole));
        hole = data < size ? lseek(fd, data, SEEK_HOLE) : size;
        err = hole < 0 ? errno : hash_data(h, fd, data, hole);
    }
    if (!err)
        err = blkhash_final(h, md, &len);
    if (err) {
        fprintf(stderr, "hash-holes: %s\n", strerror(err));
        return 1;
    }
    for (unsigned int i = 0; i < len; i++)
        printf("%02x", md[i]);
    printf("  %s\n", argv[1]);

    close(fd);
    blkhash_free(h);
    return 0;
}
