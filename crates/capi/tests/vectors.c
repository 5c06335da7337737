/* The golden vectors of test-vectors/, which reference/blkhash.py computes. */

#include "common.h"

#include <cjson/cJSON.h>

static const char *directory;

static cJSON *read_json(const char *name)
{
    char path[4096];
    unsigned char *text;
    cJSON *json;
    FILE *file;
    long size;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size = ftell(file);
    rewind(file);
    text = allocate((size_t)size + 1);
    assert_int_equal(fread(text, 1, (size_t)size, file), size);
    text[size] = 0;
    fclose(file);
    json = cJSON_Parse((const char *)text);
    assert_non_null(json);
    free(text);
    return json;
}

static const char *string_of(const cJSON *vector, const char *name)
{
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItem(vector, name));

    assert_non_null(value);
    return value;
}

static uint64_t number_of(const cJSON *vector, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(vector, name);

    assert_true(cJSON_IsNumber(item));
    return (uint64_t)cJSON_GetNumberValue(item);
}

/* Returns the next run of an image spec such as "32k:A 64k:- 32k:0", or 0 at its end. */
static char next_run(const char **spec, uint64_t *length)
{
    char *end;
    char kind;

    while (**spec == ' ')
        ++*spec;
    if (**spec == 0)
        return 0;
    *length = strtoull(*spec, &end, 10);
    if (*end != ':') {
        static const char suffixes[] = "kmgt";
        const char *suffix = strchr(suffixes, *end++);

        assert_non_null(suffix);
        *length <<= 10 * (suffix - suffixes + 1);
    }
    assert_int_equal(*end, ':');
    kind = end[1];
    *spec = end + 2;
    return kind;
}

/* Hashes an image in updates of `cut` bytes. Data begins at offset `shift` of its buffer. */
static void hash_image(struct blkhash *h, const char *spec, size_t cut, size_t shift, int counted)
{
    uint64_t offset = 0, length;
    char kind;

    while ((kind = next_run(&spec, &length)) != 0) {
        unsigned char *buf;

        if (kind == '-' || (kind == '0' && (counted || length > 16 * MIB))) {
            assert_int_equal(blkhash_zero(h, (size_t)length), 0);
            offset += length;
            continue;
        }
        buf = allocate((size_t)length + shift);
        if (kind == '#')
            count251(buf + shift, (size_t)length, offset);
        else
            memset(buf + shift, kind == '0' ? 0 : kind, (size_t)length);
        for (size_t start = 0; start < length;) {
            size_t len = length - start < cut ? (size_t)length - start : cut;

            assert_int_equal(blkhash_update(h, buf + shift + start, len), 0);
            start += len;
        }
        free(buf);
        offset += length;
    }
}

static void constructions(void **state)
{
    static const uint8_t threads[] = {1, 2, 3, 4, 7, 16, 64};
    static const size_t cuts[] = {SIZE_MAX, 512, 65536, 262144, 1000, 1048576, 4097};
    cJSON *json = read_json("constructions.json");
    const cJSON *vector;
    int count = 0;

    (void)state;
    cJSON_ArrayForEach(vector, cJSON_GetObjectItem(json, "vectors")) {
        const char *construction = string_of(vector, "construction");
        uint32_t block_size = (uint32_t)number_of(vector, "block_size");
        uint64_t size = number_of(vector, "size");

        for (size_t i = 0; i < 7; i++) {
            struct blkhash *h;

            /* 100 TiB take a second, and 100 seconds under a checker. */
            if ((size > 64 * MIB && i != (size_t)count % 7) ||
                (is_slow() && (size > 2 * MIB || (size_t)count % 31 != i)))
                continue;
            h = new_hash(string_of(vector, "digest"), construction,
                         block_size == 0 ? 4096 : block_size, threads[i], 0);
            hash_image(h, string_of(vector, "image"), cuts[i], 9 * i + (size_t)count % 64,
                       i % 2 == 0);
            assert_checksum(h, string_of(vector, "hex"));
        }
        count++;
    }
    assert_int_equal(count, number_of(json, "count"));
    cJSON_Delete(json);
}

/* With the construction "linear" the checksum is the plain digest. */
static void digests(void **state)
{
    static const char *const lists[] = {"vectors", "published"};
    cJSON *json = read_json("digests.json");
    const cJSON *vector;
    int count = 0;

    (void)state;
    for (int list = 0; list < 2; list++) {
        cJSON_ArrayForEach(vector, cJSON_GetObjectItem(json, lists[list])) {
            const char *digest = string_of(vector, "digest");
            const char *pattern = string_of(vector, "pattern");
            size_t length = (size_t)number_of(vector, "length");
            unsigned char *buf = allocate(length + 64);
            size_t shift = (size_t)count++ % 64;

            /* siphash is not allowed for checksums. */
            if (strcmp(digest, "siphash") == 0) {
                assert_null(blkhash_opts_new(digest));
            } else if (!is_slow() || count % 29 == 0) {
                struct blkhash *h = new_hash(digest, "linear", 4096, 2, 0);

                if (strcmp(pattern, "counter251") == 0) {
                    count251(buf + shift, length, 0);
                } else if (strcmp(pattern, "zeros") == 0) {
                    memset(buf + shift, 0, length);
                } else {
                    const char *text = string_of(vector, "text");

                    assert_string_equal(pattern, "text");
                    for (size_t i = 0; i < length; i++)
                        buf[shift + i] = (unsigned char)text[i % strlen(text)];
                }
                assert_int_equal(blkhash_update(h, buf + shift, length / 3), 0);
                assert_int_equal(blkhash_update(h, buf + shift + length / 3, length - length / 3),
                                 0);
                assert_checksum(h, string_of(vector, "hex"));
            }
            free(buf);
        }
    }
    assert_int_equal(count, number_of(json, "count"));
    cJSON_Delete(json);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constructions),
        cmocka_unit_test(digests),
    };

    if (argc != 2) {
        fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 2;
    }
    directory = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
