/* Prints the extents of a partition of an untrusted image, and copies it: extents IMAGE PARTITION COPY */

#include <stdio.h>
#include <unistd.h>

#include <blksum.h>

static const struct blksum_opts *options(const char *partition, struct blksum_error **error)
{
    struct blksum_opts *opts = blksum_opts_new();

    /* The image names no other files, and is read by one thread. */
    if (blksum_opts_set(opts, "follow", "none", error) == 0 &&
        blksum_opts_set(opts, "partition", partition, error) == 0 &&
        blksum_opts_set_number(opts, "threads", 1, error) == 0)
        return opts;
    blksum_opts_free(opts);
    return NULL;
}

/* Copies the data of an extent. */
static int copy(const struct blksum_image *image, const struct blksum_extent *extent, FILE *file,
                struct blksum_error **error)
{
    static unsigned char buf[1024 * 1024];
    uint64_t done = 0;

    while (done < extent->length) {
        uint64_t left = extent->length - done;
        size_t len = left < sizeof buf ? (size_t)left : sizeof buf;
        uint64_t at = extent->offset + done;

        if (blksum_image_read(image, buf, len, at, error) != 0)
            return -1;
        if (fseek(file, (long)at, SEEK_SET) != 0 || fwrite(buf, 1, len, file) != len)
            return -1;
        done += len;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct blksum_error *error = NULL;
    const struct blksum_opts *opts;
    struct blksum_image *image;
    struct blksum_extent extent;
    FILE *file;
    uint64_t at = 0;
    int found;

    if (argc != 4) {
        fprintf(stderr, "usage: extents IMAGE PARTITION COPY\n");
        return 2;
    }
    opts = options(argv[2], &error);
    image = opts ? blksum_image_open(argv[1], opts, &error) : NULL;
    file = image ? fopen(argv[3], "wb") : NULL;
    found = file != NULL ? 1 : -1;
    while (found > 0) {
        found = blksum_image_extent(image, at, &extent, &error);
        if (found <= 0)
            break;
        printf("%s %llu %llu\n", extent.kind == BLKSUM_EXTENT_ZERO ? "zero" : "data",
               (unsigned long long)extent.offset, (unsigned long long)extent.length);
        if (extent.kind == BLKSUM_EXTENT_DATA && copy(image, &extent, file, &error) != 0)
            found = -1;
        at = extent.offset + extent.length;
    }
    /* The copy has zeros at its end as well. */
    if (found == 0 && (fflush(file) != 0 || ftruncate(fileno(file), (off_t)at) != 0))
        found = -1;
    /* What was copied is of one moment. */
    if (found == 0)
        found = blksum_image_check_unchanged(image, &error);
    if (error != NULL)
        fprintf(stderr, "extents: %s\n", blksum_error_message(error));
    else if (found != 0 || fclose(file) != 0)
        perror("extents");
    blksum_error_free(error);
    blksum_image_close(image);
    blksum_opts_free((struct blksum_opts *)opts);
    return found == 0 ? 0 : 1;
}
