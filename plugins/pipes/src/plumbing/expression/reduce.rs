//! What many numbers come to: those of a list, those of a tensor of any shape, or those that stand there.

use forebay_core::{Error, Result, Tensor};

use super::{
    numbers,
    val::{Items, Val, number_at},
};
use crate::cast::{Number, Visit, visit};

/// Bytes of a tensor that are looked at together: a whole number of elements of any type.
const BLOCK: usize = 1 << 20;
/// Floats are summed up in so many sums side by side, which rounds off less than one would.
const LANES: usize = 8;

/// The numbers that a function goes over. Truth values in lists and tensors count as 0 and 1.
enum Numbers<'v, 'a> {
    Tensor(&'v Tensor),
    Items(Items<'a, 'v>),
}

impl<'v, 'a> Numbers<'v, 'a> {
    fn of(values: &'v [Val<'a>]) -> Option<Self> {
        if let [one] = values {
            if let Some(tensor) = one.tensor() {
                return Some(Self::Tensor(tensor));
            }
            if let Some(items) = one.items() {
                return Some(Self::Items(items));
            }
        }
        let numbers = values.iter().all(|value| numbers::of(value).is_some());
        numbers.then(|| Self::Items(Items::of(values)))
    }

    /// Shows them all; none where one is no number.
    fn visit(&self, visitor: &mut impl Visit) -> Option<()> {
        match self {
            Self::Tensor(tensor) => {
                // Also of a tensor without elements the type counts.
                visit(tensor.dtype(), &[], visitor)?;
                tensor.data().chunks(BLOCK).try_for_each(|block| visit(tensor.dtype(), block, visitor))
            }
            Self::Items(items) => {
                let mut all = true;
                visitor.visit(items.clone().map_while(|item| {
                    let number = number(&item);
                    all = number.is_some();
                    number
                }));
                all.then_some(())
            }
        }
    }

    /// The value at a place.
    fn at(&self, at: usize) -> Option<Val<'a>> {
        match self {
            Self::Tensor(tensor) => Some(number_at(tensor, at)),
            Self::Items(items) => items.at(at),
        }
    }
}

fn number(value: &Val<'_>) -> Option<Number> {
    Some(match *value {
        Val::Bool(truth) => Number::UInt(truth.into()),
        Val::Int(number) => Number::Int(number),
        Val::UInt(number) => Number::UInt(number),
        Val::Float(number) => Number::Float(number),
        _ => return None,
    })
}

#[inline]
fn float(number: Number) -> f64 {
    match number {
        Number::Int(number) => number as f64,
        Number::UInt(number) => number as f64,
        Number::Float(number) => number,
    }
}

#[cold]
fn none() -> Error {
    Error::invalid("no number in an empty list")
}

/// A sum: exact of integers, as a float of floats.
#[derive(Default)]
struct Sum {
    count: u64,
    whole: i128,
    floats: usize,
    lanes: [f64; LANES],
}

impl Visit for Sum {
    fn visit(&mut self, numbers: impl Iterator<Item = Number>) {
        // The lower and the upper halves of integers apart, which 64 bits hold for more of them than come at a time.
        let (mut low, mut high, mut count) = (0_u64, 0_i64, 0);
        for number in numbers {
            count += 1;
            match number {
                Number::Int(number) => {
                    low += number.cast_unsigned() & 0xffff_ffff;
                    high += number >> 32;
                }
                Number::UInt(number) => {
                    low += number & 0xffff_ffff;
                    high += (number >> 32).cast_signed();
                }
                Number::Float(number) => {
                    self.lanes[self.floats % LANES] += number;
                    self.floats += 1;
                }
            }
        }
        self.count += count;
        self.whole += (i128::from(high) << 32) + i128::from(low);
    }
}

impl Sum {
    fn of(numbers: &Numbers) -> Option<Self> {
        let mut sum = Self::default();
        numbers.visit(&mut sum)?;
        Some(sum)
    }

    fn float(&self) -> f64 {
        self.whole as f64 + self.lanes.iter().sum::<f64>()
    }
}

pub(super) fn sum<'a>(values: &[Val<'a>]) -> Option<Result<Val<'a>>> {
    let sum = Sum::of(&Numbers::of(values)?)?;
    Some(if sum.floats > 0 { Ok(Val::Float(sum.float())) } else { numbers::whole(sum.whole) })
}

pub(super) fn mean<'a>(values: &[Val<'a>]) -> Option<Result<Val<'a>>> {
    let sum = Sum::of(&Numbers::of(values)?)?;
    Some(if sum.count > 0 { Ok(Val::Float(sum.float() / sum.count as f64)) } else { Err(none()) })
}

/// The squares of how far numbers are from their mean.
struct Squares {
    mean: f64,
    sum: f64,
}

impl Visit for Squares {
    fn visit(&mut self, numbers: impl Iterator<Item = Number>) {
        for number in numbers {
            let off = float(number) - self.mean;
            self.sum += off * off;
        }
    }
}

/// Of the numbers themselves, not of those that they were drawn from: divided by how many there are.
pub(super) fn std<'a>(values: &[Val<'a>]) -> Option<Result<Val<'a>>> {
    let numbers = Numbers::of(values)?;
    let sum = Sum::of(&numbers)?;
    if sum.count == 0 {
        return Some(Err(none()));
    }
    let count = sum.count as f64;
    let mut squares = Squares { mean: sum.float() / count, sum: 0.0 };
    numbers.visit(&mut squares)?;
    Some(Ok(Val::Float((squares.sum / count).sqrt())))
}

/// The first of the numbers that no other is beyond. NaN is beyond all.
struct Best {
    greatest: bool,
    best: Option<(numbers::Number, usize)>,
    seen: usize,
}

impl Visit for Best {
    fn visit(&mut self, numbers: impl Iterator<Item = Number>) {
        for number in numbers {
            let number = match number {
                Number::Int(number) => numbers::Number::Whole(number.into()),
                Number::UInt(number) => numbers::Number::Whole(number.into()),
                Number::Float(number) => numbers::Number::Float(number),
            };
            let beyond = |(best, _): (numbers::Number, usize)| match number.compare(best) {
                Some(order) if self.greatest => order.is_gt(),
                Some(order) => order.is_lt(),
                None => !best.float().is_nan(),
            };
            if self.best.is_none_or(beyond) {
                self.best = Some((number, self.seen));
            }
            self.seen += 1;
        }
    }
}

/// The place of the best one, and that value.
fn best<'a>(values: &[Val<'a>], greatest: bool) -> Option<Result<(usize, Val<'a>)>> {
    let numbers = Numbers::of(values)?;
    let mut best = Best { greatest, best: None, seen: 0 };
    numbers.visit(&mut best)?;
    let found = best.best.and_then(|(_, at)| Some((at, numbers.at(at)?)));
    Some(found.ok_or_else(none))
}

pub(super) fn min<'a>(values: &[Val<'a>]) -> Option<Result<Val<'a>>> {
    Some(best(values, false)?.map(|(_, value)| value))
}

pub(super) fn max<'a>(values: &[Val<'a>]) -> Option<Result<Val<'a>>> {
    Some(best(values, true)?.map(|(_, value)| value))
}

pub(super) fn argmin<'a>(values: &[Val<'a>]) -> Option<Result<Val<'a>>> {
    Some(best(values, false)?.map(|(at, _)| Val::Int(at as i64)))
}

pub(super) fn argmax<'a>(values: &[Val<'a>]) -> Option<Result<Val<'a>>> {
    Some(best(values, true)?.map(|(at, _)| Val::Int(at as i64)))
}
