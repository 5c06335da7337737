"""Digests as others have published them, for generate.py.

By algorithm: the source, then (text, hex) or (text, length, hex), the text repeated to the length.
"""

ABC = "abc"
LONG56 = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"
FOX = "The quick brown fox jumps over the lazy dog"
MILLION = 1_000_000

TEXTS = {
    "crc32": (
        "CRC-32/ISO-HDLC, Catalogue of parametrised CRC algorithms: check",
        [("123456789", "cbf43926")],
    ),
    "crc32c": (
        "CRC-32/ISCSI, Catalogue of parametrised CRC algorithms: check",
        [("123456789", "e3069283")],
    ),
    "crc64": (
        "CRC-64/ECMA-182, Catalogue of parametrised CRC algorithms: check",
        [("123456789", "6c40df5f0b497347")],
    ),
    "crc64nvme": (
        "CRC-64/NVME, Catalogue of parametrised CRC algorithms: check",
        [("123456789", "ae8b14860a799888")],
    ),
    "xxh64": (
        "xxHash, xxhsum -H1",
        [("", "ef46db3751d8e999"), (ABC, "44bc2cf5ad770999")],
    ),
    "xxh3": (
        "xxHash, xxhsum -H3",
        [("", "2d06800538d394c2"), (ABC, "78af5f94892f3950")],
    ),
    "xxh128": (
        "xxHash, xxhsum -H2",
        [("", "99aa06d3014798d86001c324468d497f"), (ABC, "06b05ab6733a618578af5f94892f3950")],
    ),
    "md5": (
        "RFC 1321, A.5",
        [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            (ABC, "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            ("1234567890" * 8, "57edf4a22be3c955ac49da2e2107b67a"),
        ],
    ),
    "sha1": (
        "FIPS 180 examples",
        [
            (ABC, "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (LONG56, "84983e441c3bd26ebaae4aa1f95129e5e54670f1"),
            ("a", MILLION, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
        ],
    ),
    "sha224": (
        "FIPS 180 examples",
        [
            (ABC, "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"),
            (LONG56, "75388b16512776cc5dba5da1fd890150b0c6455cb4f58b1952522525"),
        ],
    ),
    "sha256": (
        "FIPS 180 examples",
        [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (ABC, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (LONG56, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
            ("a", MILLION, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
        ],
    ),
    "sha384": (
        "FIPS 180 examples",
        [
            (
                ABC,
                "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded163"
                "1a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
            ),
        ],
    ),
    "sha512": (
        "FIPS 180 examples",
        [
            (
                ABC,
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            ),
        ],
    ),
    "sha512-224": (
        "FIPS 180 examples",
        [(ABC, "4634270f707b6a54daae7530460842e20e37ed265ceee9a43e8924aa")],
    ),
    "sha512-256": (
        "FIPS 180 examples",
        [(ABC, "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23")],
    ),
    "sha3-224": (
        "FIPS 202 examples",
        [
            ("", "6b4e03423667dbb73b6e15454f0eb1abd4597f9a1b078e3f5b5a6bc7"),
            (ABC, "e642824c3f8cf24ad09234ee7d3c766fc9a3a5168d0c94ad73b46fdf"),
        ],
    ),
    "sha3-256": (
        "FIPS 202 examples",
        [
            ("", "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a"),
            (ABC, "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"),
        ],
    ),
    "sha3-384": (
        "FIPS 202 examples",
        [
            (
                ABC,
                "ec01498288516fc926459f58e2c6ad8df9b473cb0fc08c25"
                "96da7cf0e49be4b298d88cea927ac7f539f1edf228376d25",
            ),
        ],
    ),
    "sha3-512": (
        "FIPS 202 examples",
        [
            (
                ABC,
                "b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e"
                "10e116e9192af3c91a7ec57647e3934057340b4cf408d5a56592f8274eec53f0",
            ),
        ],
    ),
    "blake2b256": (
        "b2sum -l 256",
        [
            ("", "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"),
            (ABC, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"),
        ],
    ),
    "blake2b512": (
        "RFC 7693, appendix A",
        [
            (
                ABC,
                "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
                "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923",
            ),
        ],
    ),
    "blake2s256": (
        "RFC 7693, appendix B",
        [(ABC, "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982")],
    ),
    "blake3": (
        "b3sum",
        [
            (ABC, "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"),
            (FOX, "2f1514181aadccd913abd94cfa592701a5686ab23f8df1dff1b74710febc6d4a"),
        ],
    ),
}

# BLAKE3, test_vectors/test_vectors.json: the first 32 bytes of "hash".
BLAKE3_COUNTER251 = {
    0: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    1: "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
    1023: "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11",
    1024: "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
    1025: "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
}

# RFC 3720, B.4: CRC32C of 32 bytes of zeros, printed there byte by byte as aa 36 91 8a.
CRC32C_ZEROS = {32: "8a9136aa"}


def vectors():
    for digest, (source, cases) in TEXTS.items():
        for text, *length, value in cases:
            yield {
                "digest": digest,
                "pattern": "text",
                "text": text,
                "length": length[0] if length else len(text),
                "hex": value,
                "source": source,
            }
    for length, value in BLAKE3_COUNTER251.items():
        yield {
            "digest": "blake3",
            "pattern": "counter251",
            "length": length,
            "hex": value,
            "source": "BLAKE3, test_vectors/test_vectors.json",
        }
    for length, value in CRC32C_ZEROS.items():
        yield {
            "digest": "crc32c",
            "pattern": "zeros",
            "length": length,
            "hex": value,
            "source": "RFC 3720, B.4",
        }


PUBLISHED = list(vectors())
