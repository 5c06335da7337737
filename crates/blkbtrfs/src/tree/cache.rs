//! Cache of recently read tree blocks.

use std::collections::{HashMap, VecDeque};

use super::TreeBlock;

/// Caches recently read blocks by their logical addresses.
#[derive(Debug)]
pub(crate) struct BlockCache {
    blocks: HashMap<u64, TreeBlock>,
    order: VecDeque<u64>,
    capacity: usize,
}

impl BlockCache {
    pub(crate) fn new(node_size: u32) -> Self {
        let capacity = CACHE_SIZE / node_size as usize;
        Self { blocks: HashMap::new(), order: VecDeque::new(), capacity }
    }

    pub(crate) fn find(&self, logical: u64) -> Option<TreeBlock> {
        self.blocks.get(&logical).cloned()
    }

    pub(crate) fn keep(&mut self, logical: u64, block: &TreeBlock) {
        if self.blocks.insert(logical, block.clone()).is_none() {
            self.order.push_back(logical);
        }
        if self.order.len() > self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.blocks.remove(&oldest);
        }
    }
}

/// Maximum size of the tree blocks that are cached.
/// Limit in bytes.
const CACHE_SIZE: usize = 8 << 20;
