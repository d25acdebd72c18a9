//! Element types, numbered as DLPack numbers them.

use std::fmt;

use abi_stable::StableAbi;

/// The type of a scalar or of a tensor's elements, laid out as DLPack's `DLDataType`.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DType {
    /// 0 int, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool.
    pub code: u8,
    /// Bits in one lane.
    pub bits: u8,
    /// Lanes in one element; 1 everywhere here.
    pub lanes: u16,
}

macro_rules! dtypes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $bits:literal, $text:literal;)*) => {
        impl DType {
            $($(#[$doc])* pub const $name: Self = Self { code: $code, bits: $bits, lanes: 1 };)*

            /// Every named type with its name in NumPy's spelling.
            pub const NAMED: &'static [(Self, &'static str)] = &[$((Self::$name, $text)),*];
        }
    };
}

dtypes! {
    /// Truth, one byte: 0 or 1.
    BOOL = 6, 8, "bool";
    /// Signed, 8 bits.
    I8 = 0, 8, "int8";
    /// Signed, 16 bits.
    I16 = 0, 16, "int16";
    /// Signed, 32 bits.
    I32 = 0, 32, "int32";
    /// Signed, 64 bits.
    I64 = 0, 64, "int64";
    /// Unsigned, 8 bits.
    U8 = 1, 8, "uint8";
    /// Unsigned, 16 bits.
    U16 = 1, 16, "uint16";
    /// Unsigned, 32 bits.
    U32 = 1, 32, "uint32";
    /// Unsigned, 64 bits.
    U64 = 1, 64, "uint64";
    /// IEEE half.
    F16 = 2, 16, "float16";
    /// The upper half of an IEEE single.
    BF16 = 4, 16, "bfloat16";
    /// IEEE single.
    F32 = 2, 32, "float32";
    /// IEEE double.
    F64 = 2, 64, "float64";
}

impl DType {
    /// No type in particular: in a wish, "as it is stored".
    pub const ANY: Self = Self { code: 255, bits: 0, lanes: 0 };

    /// Bytes in one element.
    #[must_use]
    pub const fn size(self) -> usize {
        (self.bits as usize * self.lanes as usize).div_ceil(8)
    }

    /// The bits of a [scalar](crate::Value::scalar), from the bytes of one element of a tensor: signed integers are extended to 64 bits.
    /// None unless there are 1, 2, 4 or 8 bytes.
    #[must_use]
    #[inline]
    pub fn scalar_bits(self, bytes: &[u8]) -> Option<u64> {
        let bits = match *bytes {
            [byte] => u64::from(byte),
            [a, b] => u64::from(u16::from_ne_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
            _ => u64::from_ne_bytes(bytes.try_into().ok()?),
        };
        let unused = 64 - 8 * bytes.len() as u32;
        let signed = self.code == Self::I8.code;
        Some(if signed { ((bits << unused).cast_signed() >> unused).cast_unsigned() } else { bits })
    }

    /// The type in one word, as scalars carry it.
    #[must_use]
    pub(crate) const fn to_word(self) -> u32 {
        self.code as u32 | (self.bits as u32) << 8 | (self.lanes as u32) << 16
    }

    /// The type of a word made by [`to_word`](DType::to_word).
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "each part is masked by its cast")]
    pub(crate) const fn from_word(word: u32) -> Self {
        Self { code: word as u8, bits: (word >> 8) as u8, lanes: (word >> 16) as u16 }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMED.iter().find(|(dtype, _)| dtype == self) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "dtype({}, {}, {})", self.code, self.bits, self.lanes),
        }
    }
}
