//! The contestants: every implementation that runs here, and the baselines.

use std::hint::black_box;

use blkbench::{Contestant, Work};
use blkhash::{Algorithm, Digester, Implementation, implementations};

use super::filter::row_name;
use crate::implementation::obstacle;

/// Everything that could be measured, and what cannot be.
pub struct Field {
    /// In the order of the table: the baselines, then from the weakest digest to the strongest.
    pub contestants: Vec<Contestant>,
    /// Names with the reason.
    pub absent: Vec<(Implementation, String)>,
}

/// Returns all contestants, and those that cannot run.
pub fn field() -> Field {
    let mut contestants = vec![Contestant::nop(), Contestant::memcpy()];
    let mut absent = Vec::new();
    for &algorithm in Algorithm::ALL.iter().filter(|algorithm| **algorithm != Algorithm::Null) {
        if algorithm == Algorithm::Crc32c {
            contestants.push(table());
        }
        let best = Digester::new(algorithm).implementation_for(1);
        for &known in implementations(algorithm) {
            match obstacle(&known) {
                Some(reason) => absent.push((known, reason)),
                None => {
                    let mut contestant = implementation(known);
                    contestant.is_reference = algorithm == REFERENCE && known == *best;
                    contestants.push(contestant);
                }
            }
        }
    }
    Field { contestants, absent }
}

/// One implementation, by its name.
pub fn implementation(known: Implementation) -> Contestant {
    let algorithm = known.algorithm;
    let name = known.name();
    named(Contestant::new(algorithm.name(), name.clone(), move || {
        let digester =
            Digester::with_implementation(algorithm, &name).expect("it is ready to be used");
        let start = digester.start();
        let mut digests = Vec::new();
        Box::new(move |blocks| {
            digests.resize(blocks.len() * algorithm.digest_size(), 0);
            digester.finish_many(&start, blocks, &mut digests);
            black_box(&mut digests);
        })
    }))
}

/// CRC-32C by a table.
pub fn table() -> Contestant {
    named(Contestant::new("crc32c", "crc32c-table", table_crc32c))
}

fn named(mut contestant: Contestant) -> Contestant {
    contestant.row_name = row_name(&contestant.name).map(str::to_owned);
    contestant
}

/// CRC-32C as it is computed without any help from the CPU, eight bytes at a time: what the
/// instructions are compared with. blksum never uses it.
fn table_crc32c() -> Work {
    Box::new(|blocks| {
        for block in blocks {
            black_box(crc32c(black_box(block)));
        }
    })
}

fn crc32c(data: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    let (words, rest) = data.as_chunks::<8>();
    for word in words {
        let mixed = u64::from_le_bytes(*word) ^ u64::from(crc);
        let bytes = mixed.to_le_bytes();
        crc = (0..8).fold(0, |crc, byte| crc ^ TABLES[7 - byte][usize::from(bytes[byte])]);
    }
    for byte in rest {
        crc = (crc >> 8) ^ TABLES[0][usize::from(crc as u8 ^ byte)];
    }
    !crc
}

/// `TABLES[n][b]` is what byte `b` does to a CRC that `n` more bytes follow.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut table = 0;
        while table < 8 {
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 1 == 1 { (crc >> 1) ^ CASTAGNOLI } else { crc >> 1 };
                bit += 1;
            }
            tables[table][byte] = crc;
            table += 1;
        }
        byte += 1;
    }
    tables
}

/// The polynomial of CRC-32C, reflected.
const CASTAGNOLI: u32 = 0x82f6_3b78;

/// The implementation with which the documentation of btrfs compares the others.
const REFERENCE: Algorithm = Algorithm::Crc32c;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_computes_crc32c() {
        let data: Vec<u8> = (0..1000u32).map(|i| (i * 7) as u8).collect();
        for length in [0, 1, 7, 8, 9, 1000] {
            let expected = Digester::new(Algorithm::Crc32c).digest(&data[..length]).to_string();
            assert_eq!(format!("{:08x}", crc32c(&data[..length])), expected);
        }
    }

    #[test]
    fn one_contestant_is_the_reference() {
        let field = field();
        assert_eq!(field.contestants.iter().filter(|known| known.is_reference).count(), 1);
        let all: usize = Algorithm::ALL.iter().map(|known| implementations(*known).len()).sum();
        // The two baselines and the table more, the algorithm null less.
        assert_eq!(field.contestants.len() + field.absent.len(), all + 3 - 1);
    }
}
