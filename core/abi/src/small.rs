//! Small tensors, many of which lie in one piece of memory.

use std::{
    cell::{RefCell, UnsafeCell},
    mem::MaybeUninit,
    ptr, slice,
};

use crate::{Buffer, DType, MAX_DIMS, Tensor, Value, shared::Prepaid, tag};

/// Words of a piece: 4 KiB.
const WORDS: usize = 512;
/// Pieces that a thread uses in turns: enough for a chunk of samples to be on its way while the next is made.
const PIECES: usize = 32;
/// Words of a tensor beside its elements.
const HEAD: usize = size_of::<Tensor>().div_ceil(size_of::<u64>());
const _: () = assert!(align_of::<Tensor>() <= align_of::<u64>());

/// Memory for tensors and their elements.
struct Piece(UnsafeCell<MaybeUninit<[u64; WORDS]>>);

// SAFETY: each word is written by the one thread that was given it, before what lies there is shown to anybody.
unsafe impl Send for Piece {}
// SAFETY: as above.
unsafe impl Sync for Piece {}

/// The pieces of a thread: one that it fills, and those before it, which are filled again once nobody holds them.
struct Pieces {
    pieces: [Option<Prepaid<Piece>>; PIECES],
    /// The one that is filled.
    at: usize,
    /// How many words of it were given.
    words: usize,
}

thread_local! {
    static PIECES_OF_THREAD: RefCell<Pieces> =
        const { RefCell::new(Pieces { pieces: [const { None }; PIECES], at: 0, words: WORDS }) };
}

impl Pieces {
    /// So many words which nobody else has, and what keeps them and points at the first.
    #[inline]
    fn give(&mut self, words: usize) -> (*mut u64, Buffer) {
        if self.words + words > WORDS {
            self.turn();
        }
        let new = || Prepaid::new(Piece(UnsafeCell::new(MaybeUninit::uninit())));
        let piece = self.pieces[self.at].get_or_insert_with(new);
        let place = piece.value().0.get().cast::<u64>().wrapping_add(self.words);
        self.words += words;
        (place, Buffer { ptr: place.cast(), len: 0, owner: piece.give() })
    }

    /// Goes on to the next piece, which is another one where somebody still holds it.
    #[cold]
    fn turn(&mut self) {
        (self.at, self.words) = ((self.at + 1) % PIECES, 0);
        let piece = &mut self.pieces[self.at];
        if !piece.as_ref().is_some_and(Prepaid::is_alone) {
            *piece = None;
        }
    }
}

impl Value {
    /// The most bytes of elements that a [small tensor](Value::small_tensor) has.
    pub const SMALL: usize = 256;

    /// A row-major tensor with at most [`SMALL`](Value::SMALL) bytes of elements, which `fill` is given as zeros to write.
    ///
    /// Cost: no allocation but one for every couple of dozen tensors that a thread makes, and none at all where most are dropped
    /// soon. Those share memory, 4 KiB, which goes with the last of them.
    ///
    /// # Errors
    /// `fill`, for a larger one or more than [`MAX_DIMS`] axes.
    ///
    /// ```
    /// use forebay_abi::{DType, Value};
    ///
    /// let value = Value::small_tensor(DType::U8, &[2, 2], |bytes| bytes.copy_from_slice(&[1, 2, 3, 4]));
    /// let tensor = value.as_ref().ok().and_then(Value::as_tensor);
    /// assert_eq!(tensor.map(|tensor| tensor.shape()), Some(&[2, 2][..]));
    /// ```
    #[inline]
    pub fn small_tensor<F: FnOnce(&mut [u8])>(dtype: DType, shape: &[usize], fill: F) -> Result<Self, F> {
        let len = shape.iter().try_fold(dtype.size(), |bytes, &axis| bytes.checked_mul(axis));
        let Some(len) = len.filter(|&len| len <= Self::SMALL && shape.len() <= MAX_DIMS) else {
            return Err(fill);
        };
        let words = len.div_ceil(size_of::<u64>());
        // A thread that ends has no piece any more.
        let Ok((head, kept)) = PIECES_OF_THREAD.try_with(|pieces| pieces.borrow_mut().give(HEAD + words))
        else {
            return Err(fill);
        };
        let elements = head.wrapping_add(HEAD);
        // SAFETY: the words are this call's own, and so are their bytes, once they are set.
        let bytes = unsafe {
            ptr::write_bytes(elements, 0, words);
            slice::from_raw_parts_mut(elements.cast::<u8>(), len)
        };
        fill(bytes);
        // Without a reference of its own, and never dropped: whoever holds the tensor holds the piece.
        let data = Buffer { ptr: elements.cast(), len, owner: kept.owner };
        // SAFETY: the words before the elements are this call's own too, and as aligned as a tensor is.
        unsafe { head.cast::<Tensor>().write(Tensor::row_major(dtype, shape, data)) };
        Ok(Self { tag: tag::TENSOR, word: 0, payload: kept })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[usize], numbers: &[u32]) -> Option<Value> {
        Value::small_tensor(DType::U32, shape, |bytes| {
            assert!(bytes.iter().all(|&byte| byte == 0));
            for (place, number) in bytes.chunks_mut(4).zip(numbers) {
                place.copy_from_slice(&number.to_ne_bytes());
            }
        })
        .ok()
    }

    fn large(shape: &[usize], numbers: &[u32]) -> Value {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        Tensor::try_new(DType::U32, shape, bytes.into()).unwrap().into()
    }

    #[test]
    fn they_equal_large_ones_of_the_same_elements() {
        for shape in [&[][..], &[0], &[1], &[3, 0, 2], &[2, 3], &[64], &[1; MAX_DIMS]] {
            let numbers: Vec<u32> = (0..shape.iter().product::<usize>() as u32).collect();
            let (small, large) = (tensor(shape, &numbers).unwrap(), large(shape, &numbers));
            assert_eq!(small, large);
            let strides = |value: &Value| value.as_tensor().unwrap().strides().to_vec();
            assert_eq!((strides(&small), small.size()), (strides(&large), large.size()));
        }
        for shape in [&[65][..], &[usize::MAX, 2], &[usize::MAX, 0, usize::MAX], &[1; MAX_DIMS + 1]] {
            assert_eq!(tensor(shape, &[]), None);
        }
    }

    #[test]
    fn each_keeps_what_it_lies_in() {
        let wanted = |at: u32| large(&[(at % 7) as usize], &vec![at; (at % 7) as usize]);
        let all: Vec<_> = (0..1000).map(|at| tensor(&[(at % 7) as usize], &[at; 7]).unwrap()).collect();
        let kept: Vec<_> = all.iter().step_by(100).cloned().collect();
        let data: Vec<_> =
            all.iter().skip(1).step_by(100).map(|value| value.as_tensor().unwrap().data().clone()).collect();
        let head = all[2].as_tensor().unwrap().clone();
        assert!((0..).zip(&all).all(|(at, value)| *value == wanted(at)));
        std::thread::spawn(|| drop(all)).join().unwrap();
        assert!((0..5000).all(|at| tensor(&[(at % 7) as usize], &[at; 7]).unwrap() == wanted(at)));
        assert!((0..).step_by(100).zip(&kept).all(|(at, value)| *value == wanted(at)));
        assert!(
            (1..).step_by(100).zip(&data).all(|(at, data)| data == wanted(at).as_tensor().unwrap().data())
        );
        assert_eq!(Value::from(head), wanted(2));
    }

    #[test]
    fn the_memory_of_dropped_ones_is_used_again() {
        let place = |value: &Value| value.as_tensor().unwrap().data().as_ptr() as usize;
        let kept: Vec<Value> = (0..200).map(|at| tensor(&[1], &[at]).unwrap()).collect();
        let mut places = std::collections::HashSet::new();
        assert!((0..100_000).all(|at| {
            places.insert(place(&tensor(&[1], &[at]).unwrap()));
            places.len() <= PIECES * WORDS / HEAD
        }));
        assert!(kept.iter().all(|value| !places.contains(&place(value))));
        assert!((0..).zip(&kept).all(|(at, value)| *value == large(&[1], &[at])));
    }

    #[test]
    fn one_is_made_while_another_is_filled() {
        let mut inner = None;
        let outer = Value::small_tensor(DType::U8, &[1], |bytes| {
            inner = tensor(&[1], &[7]);
            bytes[0] = 8;
        });
        let outer = outer.ok().unwrap();
        assert_eq!(outer.as_tensor().unwrap().data().as_slice(), [8]);
        assert_eq!(inner, Some(large(&[1], &[7])));
        let failed = std::panic::catch_unwind(|| Value::small_tensor(DType::U8, &[1], |_| panic!("no")));
        assert!(failed.is_err() && tensor(&[1], &[9]) == Some(large(&[1], &[9])));
    }
}
