//! Arithmetic of polynomials over GF(2), modulo the polynomial of a CRC.
//!
//! A CRC's register is such a polynomial, and a zero byte multiplies it by x^8. So any number of
//! zeros is one multiplication by a power of x. Computing the power takes one step for each bit of
//! its exponent.

/// The polynomial of a CRC, the modulus of the arithmetic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Modulus {
    /// The degree, which is the width of the register in bits.
    pub width: u32,
    /// The coefficients below the highest one. The coefficient of x^i is in bit i.
    pub coefficients: u64,
    /// Whether registers hold the coefficient of x^i in the bit `width` - 1 - i.
    pub is_reflected: bool,
}

/// A power of x that stands for a number of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shift(u64);

impl Modulus {
    /// Returns the factor by which `length` bytes multiply a register.
    pub(super) fn shift(&self, mut length: u64) -> Shift {
        let (mut power, mut square) = (1, 1 << 8);
        while length > 0 {
            if length & 1 == 1 {
                power = self.multiply(power, square);
            }
            square = self.multiply(square, square);
            length >>= 1;
        }
        Shift(power)
    }

    /// Returns the register after the zero bytes of `shift`.
    pub(super) fn apply(&self, shift: Shift, register: u64) -> u64 {
        self.turn(self.multiply(self.turn(register), shift.0))
    }

    /// Converts between the bit order of a register and the order of coefficients.
    fn turn(&self, register: u64) -> u64 {
        if self.is_reflected { register.reverse_bits() >> (64 - self.width) } else { register }
    }

    fn multiply(&self, a: u64, b: u64) -> u64 {
        let top = self.width - 1;
        let mask = u64::MAX >> (63 - top);
        let mut product = 0;
        for bit in (0..self.width).rev() {
            let carry = product >> top & 1;
            product = (product << 1 & mask) ^ (self.coefficients * carry);
            product ^= a * (b >> bit & 1);
        }
        product
    }
}
