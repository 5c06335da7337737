//! Maps in other formats. tests/maps/test_map_export.py gives them to the programs that read them.

use blkhash::{Algorithm, BlockDigests, BlockSize, Digester, Salt, Sink};
use blkindex::{Format, export};
use blkmap::{Error, Header, Map, Writer};

const BLOCK: usize = 512;

fn header(algorithm: Algorithm, salt: Salt) -> Header {
    let block_size = BlockSize::try_from(BLOCK as u64).unwrap();
    Header::with_id([7; 16], algorithm, block_size, salt)
}

/// Returns a map of these blocks, which knows the pages from `page` on. The last block has 100 bytes.
fn map(header: Header, blocks: &[u8], page: u64) -> Map {
    let leaf = header.leaf();
    let skipped = (page * header.blocks_per_page()) as usize;
    let mut digests = BlockDigests::default();
    let last = blocks.len() - 1;
    for &byte in &blocks[skipped..last] {
        match byte {
            0 => digests.push_zero_blocks(1, BLOCK),
            byte => digests.push(&leaf.hash(&[byte; BLOCK]), BLOCK as u64),
        }
    }
    digests.push(&leaf.hash(&[blocks[last]; 100]), 100);
    let mut padded = vec![blocks[last]; 100];
    padded.resize(BLOCK, 0);
    let mut writer = Writer::new(Vec::new(), header, (last * BLOCK + 100) as u64).unwrap();
    writer.skip_to(page).unwrap();
    writer.take(&digests).unwrap();
    writer.set_padded_last(Some(leaf.hash(&padded)));
    Map::open(writer.finish("{}").unwrap().0).unwrap()
}

fn text(map: &Map, format: Format) -> String {
    let mut bytes = Vec::new();
    export(map, format, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Zeros at the end of one page, in a page of their own, and at the start of the next one.
fn blocks() -> Vec<u8> {
    [vec![1; 126], vec![0; 2 + 128 + 1], vec![2], vec![3]].concat()
}

fn digest(header: &Header, byte: u8, length: usize) -> String {
    header.leaf().hash(&vec![byte; length]).to_string()
}

#[test]
fn runs_do_not_depend_on_pages() {
    let header = header(Algorithm::Sha256, Salt::EMPTY);
    let map = map(header, &blocks(), 0);
    let (one, two, three) =
        (digest(&header, 1, BLOCK), digest(&header, 2, BLOCK), digest(&header, 3, 100));
    let lines = text(&map, Format::Lines);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 126 + 1 + 2);
    assert_eq!(lines[125], format!("{} 512 {one}", 125 * BLOCK));
    assert_eq!(lines[126], format!("{} {} zero", 126 * BLOCK, 131 * BLOCK));
    assert_eq!(lines[127], format!("{} 512 {two}", 257 * BLOCK));
    assert_eq!(lines[128], format!("{} 100 {three}", 258 * BLOCK));
    let rows = text(&map, Format::Csv);
    let rows: Vec<&str> = rows.lines().collect();
    assert_eq!(rows[0], "block,offset,length,kind,digest");
    assert_eq!(rows[127], format!("126,{},{},zero,", 126 * BLOCK, 131 * BLOCK));
    assert_eq!(rows[129], format!("258,{},100,data,{three}", 258 * BLOCK));
}

#[test]
fn json_has_a_summary() {
    let header = header(Algorithm::Sha256, "00ff".parse().unwrap());
    let map = map(header, &blocks(), 1);
    let json = text(&map, Format::Json);
    let objects: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 1 + 1 + 2 + 1);
    let unknown = serde_json::json!(
        {"type": "unknown", "block": 0, "blocks": 128, "offset": 0, "length": 65536}
    );
    let zeros = serde_json::json!(
        {"type": "zeros", "block": 128, "blocks": 129, "offset": 65536, "length": 129 * BLOCK}
    );
    let block = serde_json::json!({
        "type": "block", "block": 258, "offset": 258 * BLOCK, "length": 100,
        "digest": digest(&header, 3, 100),
    });
    let summary = serde_json::json!({
        "type": "summary", "digest": "sha256", "block_size": 512, "salt": "00ff",
        "size": 258 * BLOCK + 100, "blocks": 259, "data_blocks": 2, "zero_blocks": 129,
        "unknown_blocks": 128, "root": null, "content_id": null,
    });
    assert_eq!(
        [&objects[0], &objects[1], &objects[3], &objects[4]],
        [&unknown, &zeros, &block, &summary]
    );
}

#[test]
fn bmaps_have_their_own_checksum() {
    for algorithm in [Algorithm::Sha256, Algorithm::Sha1, Algorithm::Sha512] {
        let xml = text(&map(header(algorithm, Salt::EMPTY), &blocks(), 0), Format::Bmap);
        assert!(xml.contains("<MappedBlocksCount> 128 </MappedBlocksCount>"));
        assert!(xml.contains("<BlocksCount> 259 </BlocksCount>"));
        assert_eq!(xml.matches("<Range ").count(), 128);
        let (_, rest) = xml.split_once("<BmapFileChecksum> ").unwrap();
        let (checksum, _) = rest.split_once(' ').unwrap();
        let zeroed = xml.replacen(checksum, &"0".repeat(checksum.len()), 1);
        let expected = Digester::new(algorithm).digest(zeroed.as_bytes());
        assert_eq!(checksum, expected.to_string());
    }
}

#[test]
fn bmaps_of_other_maps_are_refused() {
    let refused = |map: &Map| {
        let mut bytes = Vec::new();
        let error = export(map, Format::Bmap, &mut bytes).unwrap_err();
        assert!(bytes.is_empty());
        error
    };
    let plain = header(Algorithm::Sha256, Salt::EMPTY);
    assert!(matches!(refused(&map(plain, &blocks(), 1)), Error::Incomplete { .. }));
    for other in
        [header(Algorithm::Blake3, Salt::EMPTY), header(Algorithm::Sha256, "00".parse().unwrap())]
    {
        assert!(matches!(refused(&map(other, &blocks(), 0)), Error::Unsupported(_)));
    }
}
