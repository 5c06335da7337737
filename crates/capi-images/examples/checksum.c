/* Prints the checksum of an image, and whether it has a value: checksum IMAGE [VALUE] */

#include <stdio.h>

#include <blksum.h>

static int show_progress(void *user_data, uint64_t done, uint64_t total)
{
    (void)user_data;
    if (total > 0)
        fprintf(stderr, "%d%%\r", (int)(100.0 * (double)done / (double)total));
    return 0; /* another value cancels */
}

int main(int argc, char **argv)
{
    unsigned char md[BLKSUM_MAX_MD_SIZE];
    char tag[256] = "";
    unsigned int len = 0;
    int verdict = BLKSUM_EQUAL;
    struct blksum_error *error = NULL;
    struct blksum_image *image;

    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: checksum IMAGE [VALUE]\n");
        return 2;
    }
    image = blksum_image_open(argv[1], NULL, &error);
    if (image != NULL && argc == 3)
        verdict = blksum_image_expect(image, argv[2], NULL, show_progress, NULL, tag, sizeof tag,
                                      &error);
    else if (image != NULL)
        blksum_image_checksum(image, NULL, show_progress, NULL, md, &len, &error);
    blksum_image_close(image);
    if (error != NULL) {
        fprintf(stderr, "checksum: %s\n", blksum_error_message(error));
        blksum_error_free(error);
        return 1;
    }
    if (argc == 3) {
        printf("%s: %s %s\n", argv[1], verdict == BLKSUM_EQUAL ? "OK" : "FAILED", tag);
        return verdict == BLKSUM_EQUAL ? 0 : 1;
    }
    for (unsigned int i = 0; i < len; i++)
        printf("%02x", md[i]);
    printf("  %s\n", argv[1]);
    return 0;
}
