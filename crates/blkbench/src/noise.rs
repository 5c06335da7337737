//! Noise that is the same in every run, from SplitMix64 by Sebastiano Vigna.

/// A generator with its state.
pub struct Noise(pub u64);

impl Noise {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut noise = self.0;
        noise = (noise ^ (noise >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        noise = (noise ^ (noise >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        noise ^ (noise >> 31)
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        for word in bytes.chunks_mut(8) {
            word.copy_from_slice(&self.next().to_le_bytes()[..word.len()]);
        }
    }

    pub fn block<const LENGTH: usize>(&mut self) -> [u8; LENGTH] {
        let mut block = [0; LENGTH];
        self.fill(&mut block);
        block
    }
}
