/* Writes the map of an image, or prints where the image differs from it: map MAP IMAGE */

#include <stdio.h>
#include <unistd.h>

#include <blksum.h>

static const char *const kinds[] = {"changed",   "zeroed",     "written",
                                    "left-only", "right-only", "unknown"};

/* Prints the differences. Returns 0 if there is none. */
static int print(const struct blksum_diff *diff, struct blksum_error **error)
{
    int64_t count = blksum_diff_count(diff, error);

    for (int64_t i = 0; i < count; i++) {
        struct blksum_difference it;

        if (blksum_diff_get(diff, (size_t)i, &it, error) != 0)
            return -1;
        printf("%llu %llu %s\n", (unsigned long long)it.offset, (unsigned long long)it.length,
               it.kind < 6 ? kinds[it.kind] : "other");
    }
    return count == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct blksum_error *error = NULL;
    struct blksum_image *image;
    struct blksum_map *map = NULL;
    struct blksum_diff *diff = NULL;
    int result = 2;

    if (argc != 3) {
        fprintf(stderr, "usage: map MAP IMAGE\n");
        return 2;
    }
    image = blksum_image_open(argv[2], NULL, &error);
    if (image != NULL && access(argv[1], F_OK) != 0) {
        result = blksum_map_create(argv[1], image, NULL, NULL, NULL, &error) == 0 ? 0 : 2;
    } else if (image != NULL) {
        map = blksum_map_open(argv[1], NULL, &error);
        if (map != NULL)
            diff = blksum_map_verify(map, image, NULL, NULL, NULL, &error);
        if (diff != NULL)
            result = print(diff, &error);
    }
    if (error != NULL)
        fprintf(stderr, "map: %s\n", blksum_error_message(error));
    blksum_error_free(error);
    blksum_diff_free(diff);
    blksum_map_close(map);
    blksum_image_close(image);
    return result < 0 ? 2 : result;
}
