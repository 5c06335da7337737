//! Verifies all mirrors of tree blocks, many at a time.

use super::finding::{Finding, Place, Problem, Subject};
use super::job::Job;
use super::known::Outcome;
use super::summary::add;
use crate::checksum::{Checksum, LANES, MAX_SIZE};
use crate::chunk::Chunk;
use crate::devices::ReadError;
use crate::tree::{BlockDefect, Expected, TreeBlock};

/// Read buffer for blocks.
#[derive(Default)]
pub(super) struct BlockBuffer {
    bytes: Vec<u8>,
    sums: Vec<u8>,
}

/// Whether blocks count as verified. Blocks that were counted before do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    Yes,
    No,
}

/// Results for a block while its mirrors are verified.
#[derive(Default)]
struct Examined {
    block: Option<TreeBlock>,
    good: Vec<u32>,
    bad: Vec<(u32, Problem)>,
}

impl Examined {
    /// Takes the block of a mirror, from 0.
    fn take(&mut self, mirror: u32, result: Result<TreeBlock, BlockDefect>) {
        let block = match result {
            Ok(block) => block,
            Err(defect) => return self.bad.push((mirror, Problem::Block(defect))),
        };
        if let (Some(known), Some(&other)) = (&self.block, self.good.first())
            && known.content() != block.content()
        {
            return self.bad.push((mirror, Problem::Block(BlockDefect::Mirror { other })));
        }
        self.good.push(mirror + 1);
        self.block.get_or_insert(block);
    }
}

impl Job<'_> {
    /// Verifies every mirror of the blocks. Returns a good mirror of each, if any.
    pub(super) fn verify_blocks(
        &self,
        batch: &[Expected],
        buffer: &mut BlockBuffer,
        counting: Counting,
    ) -> Vec<(Outcome, Option<TreeBlock>)> {
        let node_size = self.filesystem.node_size();
        let chunks: Vec<Option<&Chunk>> = batch
            .iter()
            .map(|it| self.filesystem.chunks().find_range(it.logical, node_size as u64))
            .collect();
        let mut examined: Vec<Examined> = batch.iter().map(|_| Examined::default()).collect();
        buffer.bytes.resize(batch.len() * node_size, 0);
        let mirrors = chunks.iter().flatten().map(|chunk| chunk.mirrors()).max().unwrap_or(0);
        for mirror in 0..mirrors {
            self.verify_mirror(mirror, batch, &chunks, &mut examined, buffer, counting);
        }
        let parts = batch.iter().zip(chunks).zip(examined);
        parts.map(|((expected, chunk), it)| self.conclude(expected, chunk, it)).collect()
    }

    fn verify_mirror(
        &self,
        mirror: u32,
        batch: &[Expected],
        chunks: &[Option<&Chunk>],
        examined: &mut [Examined],
        buffer: &mut BlockBuffer,
        counting: Counting,
    ) {
        let node_size = self.filesystem.node_size();
        let summer = self.filesystem.summer();
        let mut present = Vec::with_capacity(batch.len());
        let mut rebuilt = 0;
        let mut missing = 0;
        for (index, slot) in buffer.bytes.chunks_exact_mut(node_size).enumerate() {
            let Some(chunk) = chunks[index].filter(|chunk| mirror < chunk.mirrors()) else {
                continue;
            };
            match self.filesystem.read(chunk, batch[index].logical, mirror, slot) {
                Ok(()) => present.push(index),
                Err(ReadError::Missing(_)) => {
                    let it = &mut examined[index];
                    match self.filesystem.rebuild_block(chunk, &batch[index], slot) {
                        Some(Ok(block)) => {
                            it.block.get_or_insert(block);
                            rebuilt += 1;
                        }
                        Some(Err(defect)) => {
                            it.bad.push((mirror, Problem::Block(defect)));
                            rebuilt += 1;
                        }
                        None => missing += node_size as u64,
                    }
                }
                Err(error) => {
                    let problem = Problem::Unreadable(error.to_string());
                    examined[index].bad.push((mirror, problem));
                }
            }
        }
        let bytes = buffer.bytes.as_slice();
        let block = |index: usize| &bytes[index * node_size..][..node_size];
        buffer.sums.resize(present.len() * summer.size(), 0);
        for (some, sums) in present.chunks(LANES).zip(buffer.sums.chunks_mut(LANES * summer.size()))
        {
            let inputs: Vec<&[u8]> = some.iter().map(|index| &block(*index)[MAX_SIZE..]).collect();
            summer.sum_many(&inputs, sums);
        }
        for (index, sum) in present.iter().zip(buffer.sums.chunks_exact(summer.size())) {
            let (bytes, it) = (block(*index), &mut examined[*index]);
            let (expected, computed) = (Checksum::new(&bytes[..summer.size()]), Checksum::new(sum));
            let result = if expected == computed {
                TreeBlock::new(bytes, &batch[*index], self.filesystem.identity())
            } else {
                Err(BlockDefect::Checksum { expected, computed })
            };
            it.take(mirror, result);
        }
        if counting == Counting::No {
            return;
        }
        add(&self.counters.missing_bytes, missing);
        add(&self.counters.rebuilt_bytes, rebuilt * node_size as u64);
        let count = present.len() as u64 + rebuilt;
        add(&self.counters.tree_blocks, count);
        add(&self.counters.checksums, count);
        add(&self.counters.tree_bytes, count * node_size as u64);
        self.advance(count * node_size as u64);
    }

    /// Reports the defects of a block.
    fn conclude(
        &self,
        expected: &Expected,
        chunk: Option<&Chunk>,
        mut examined: Examined,
    ) -> (Outcome, Option<TreeBlock>) {
        let mut rebuildable = None;
        if let Some(chunk) = chunk.filter(|_| examined.block.is_none()) {
            let mut bytes = vec![0; self.filesystem.node_size()];
            let rebuilt = self.filesystem.rebuild_block(chunk, expected, &mut bytes);
            rebuildable = rebuilt.as_ref().map(Result::is_ok);
            examined.block = rebuilt.and_then(Result::ok);
        }
        if examined.block.is_none() {
            add(&self.counters.lost_blocks, 1);
        }
        if chunk.is_none() {
            examined.bad.push((0, Problem::Unmapped));
        }
        let is_wrong = examined.bad.iter().any(|(_, problem)| match problem {
            Problem::Block(defect) => defect.depends_on_reference(),
            _ => false,
        });
        let outcome = match &examined.block {
            Some(_) => Outcome::Good,
            None if is_wrong => Outcome::Wrong,
            None => Outcome::Lost,
        };
        if !examined.bad.is_empty() {
            let owners = self.owners(|resolver| resolver.tree_block(expected));
            for (mirror, problem) in examined.bad {
                // If mirrors differ, nothing shows which one is correct.
                let is_known = !matches!(problem, Problem::Block(BlockDefect::Mirror { .. }));
                let good_mirrors = if is_known { examined.good.clone() } else { Vec::new() };
                let place = chunk.map(|chunk| {
                    let run = chunk.map(expected.logical, mirror);
                    Place { mirror: mirror + 1, device: run.device, physical: run.physical }
                });
                self.report(Finding {
                    logical: Some(expected.logical),
                    place,
                    mirrors: chunk.map_or(0, Chunk::mirrors),
                    good_mirrors,
                    rebuildable,
                    parent: expected.parent,
                    owners: owners.clone(),
                    ..Finding::new(
                        Subject::TreeBlock { tree: expected.tree, level: expected.level },
                        problem,
                        self.filesystem.node_size() as u64,
                    )
                });
            }
        }
        (outcome, examined.block)
    }
}
