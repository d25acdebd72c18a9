//! `filter`: comparisons of columns with literals, all of which must hold; what they say of rows, and of statistics.

use std::{cmp::Ordering, fmt};

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, RecordBatch, UInt64Array,
    cast::AsArray as _,
    types::{
        Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
        DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
        TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
        UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use forebay_core::{Error, Result, Value, View};

use crate::words::{Words, is_of_name};

/// Comparisons, all of which must hold: `label == 3 and split != 'test' and score is not null`.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicate {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Term {
    pub(crate) column: String,
    pub(crate) test: Test,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    Compare(Op, Literal),
    IsNull,
    NotNull,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Op {
    pub(crate) const NAMES: [(&'static str, Self); 8] = [
        ("==", Self::Eq),
        ("!=", Self::Ne),
        ("<>", Self::Ne),
        ("<=", Self::Le),
        (">=", Self::Ge),
        ("=", Self::Eq),
        ("<", Self::Lt),
        (">", Self::Gt),
    ];

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, op)| *op == self).map_or("", |(name, _)| name)
    }

    fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Eq => order == Some(Ordering::Equal),
            Self::Ne => order != Some(Ordering::Equal),
            Self::Lt => order == Some(Ordering::Less),
            Self::Le => order.is_some_and(Ordering::is_le),
            Self::Gt => order == Some(Ordering::Greater),
            Self::Ge => order.is_some_and(Ordering::is_ge),
        }
    }

    /// Whether it may hold for a value from `min` to `max`, of which the order to the literal is known.
    fn may_hold(self, min: Option<Ordering>, max: Option<Ordering>) -> bool {
        let (min, max) = (min.unwrap_or(Ordering::Less), max.unwrap_or(Ordering::Greater));
        match self {
            Self::Eq => min.is_le() && max.is_ge(),
            Self::Ne => true,
            Self::Lt => min.is_lt(),
            Self::Le => min.is_le(),
            Self::Gt => max.is_gt(),
            Self::Ge => max.is_ge(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Int(i64),
    Float(f64),
    Text(String),
    Bool(bool),
}

/// A value that a column must equal.
pub(crate) enum Equal<'a> {
    Int(i64),
    Text(&'a str),
}

/// What is known of some rows of a column without reading them, one entry for each group of rows.
pub(crate) struct Bounds {
    pub(crate) mins: ArrayRef,
    pub(crate) maxes: ArrayRef,
    pub(crate) nulls: UInt64Array,
    pub(crate) rows: Vec<u64>,
}

impl Predicate {
    /// Reads `column op literal`, joined by `and`.
    ///
    /// The operators are `==` (or `=`), `!=` (or `<>`), `<`, `<=`, `>`, `>=`, `is null` and `is not null`; literals are integers,
    /// floats, `true`, `false`, and text in single or double quotes. A name with other signs than letters, digits, `_` and `.`
    /// stands in backticks. Of a null no comparison holds; of NaN only `!=`.
    ///
    /// ```
    /// use forebay_arrow::Predicate;
    ///
    /// assert!(Predicate::parse("label == 3 and `full name` != 'heron'").is_ok());
    /// assert!(Predicate::parse("label like 'a%'").is_err());
    /// ```
    ///
    /// # Errors
    /// `Invalid`, saying what was expected where.
    pub fn parse(text: &str) -> Result<Self> {
        let mut rest = Words { text, at: 0 };
        let mut terms = vec![rest.term()?];
        while rest.word("and") {
            terms.push(rest.term()?);
        }
        match rest.left().is_empty() {
            true => Ok(Self { terms }),
            false => Err(rest.expected("`and` or the end")),
        }
    }

    /// The columns that are compared, each once.
    pub(crate) fn columns(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.terms.iter().map(|term| term.column.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// What is left to test when these columns have one value in all rows; none when a test on them fails.
    pub(crate) fn given(&self, known: &[(String, Value)]) -> Result<Option<Self>> {
        let mut terms = Vec::new();
        for term in &self.terms {
            match known.iter().find(|(name, _)| *name == term.column) {
                None => terms.push(term.clone()),
                Some((_, value)) if !term.holds_for(value)? => return Ok(None),
                Some(_) => {}
            }
        }
        Ok(Some(Self { terms }))
    }

    /// Whether there is nothing to test.
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Which rows of a batch pass.
    ///
    /// # Errors
    /// `Invalid` when a column is missing, or its type cannot be compared with the literal.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanBuffer> {
        let mut passed = BooleanBuffer::new_set(batch.num_rows());
        for term in &self.terms {
            let column = batch.column_by_name(&term.column);
            let column = column.ok_or_else(|| missing(&term.column, batch.schema_ref().fields()))?;
            passed = &passed & &term.rows(column)?;
        }
        Ok(passed)
    }

    /// The columns that must equal a value, which is an integer or text.
    pub(crate) fn equalities(&self) -> impl Iterator<Item = (&str, Equal<'_>)> {
        self.terms.iter().filter_map(|term| match &term.test {
            Test::Compare(Op::Eq, Literal::Int(value)) => Some((term.column.as_str(), Equal::Int(*value))),
            Test::Compare(Op::Eq, Literal::Text(value)) => Some((term.column.as_str(), Equal::Text(value))),
            _ => None,
        })
    }

    /// For each column of which `bounds` knows something, by groups of rows of its own, how many rows each group has, and whether any may pass.
    pub(crate) fn each_may_pass(
        &self,
        mut bounds: impl FnMut(&str) -> Option<Bounds>,
    ) -> Result<Vec<Vec<(u64, bool)>>> {
        let mut found = Vec::new();
        for term in &self.terms {
            let Some(known) = bounds(&term.column) else { continue };
            let groups = known.rows.iter().enumerate();
            found.push(
                groups.map(|(at, &rows)| Ok((rows, term.may_pass(&known, at)?))).collect::<Result<_>>()?,
            );
        }
        Ok(found)
    }

    /// Which groups of rows may have rows that pass; `bounds` says what is known of a column, if anything is.
    pub(crate) fn may_pass(
        &self,
        groups: usize,
        mut bounds: impl FnMut(&str) -> Option<Bounds>,
    ) -> Result<Vec<bool>> {
        let mut keep = vec![true; groups];
        for term in &self.terms {
            let Some(known) = bounds(&term.column) else { continue };
            for (at, keep) in keep.iter_mut().enumerate() {
                *keep &= term.may_pass(&known, at)?;
            }
        }
        Ok(keep)
    }
}

impl fmt::Display for Predicate {
    /// The text that [`parse`](Predicate::parse) reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Term { column, test }) in self.terms.iter().enumerate() {
            let quote = if column.chars().all(is_of_name) { "" } else { "`" };
            let and = if at == 0 { "" } else { " and " };
            write!(f, "{and}{quote}{column}{quote} ")?;
            match test {
                Test::IsNull => f.write_str("is null")?,
                Test::NotNull => f.write_str("is not null")?,
                Test::Compare(op, literal) => write!(f, "{} {literal}", op.name())?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Bool(value) => write!(f, "{value}"),
            // It was read from quotes, so it has one kind of them at most.
            Self::Text(value) if value.contains('\'') => write!(f, "\"{value}\""),
            Self::Text(value) => write!(f, "'{value}'"),
        }
    }
}

/// The error for a column that is not there.
pub(crate) fn missing(column: &str, fields: &arrow_schema::Fields) -> Error {
    let names: Vec<_> = fields.iter().take(20).map(|field| field.name().as_str()).collect();
    Error::invalid(format!("no column `{column}`; there are {}", names.join(", ")))
}

impl Term {
    fn rows(&self, column: &ArrayRef) -> Result<BooleanBuffer> {
        let valid = column.logical_nulls();
        let valid = valid.as_ref().map(NullBuffer::inner);
        let len = column.len();
        let all = || BooleanBuffer::new_set(len);
        Ok(match &self.test {
            Test::NotNull => valid.cloned().unwrap_or_else(all),
            Test::IsNull => valid.map_or_else(|| BooleanBuffer::new_unset(len), |valid| !valid),
            Test::Compare(op, literal) => {
                let order = order(column, literal).map_err(|error| error.context("column", &self.column))?;
                BooleanBuffer::collect_bool(len, |at| {
                    valid.is_none_or(|valid| valid.value(at)) && op.holds(order(at))
                })
            }
        })
    }

    fn may_pass(&self, known: &Bounds, at: usize) -> Result<bool> {
        let nulls = (!known.nulls.is_null(at)).then(|| known.nulls.value(at));
        Ok(match &self.test {
            Test::IsNull => nulls != Some(0),
            Test::NotNull => nulls.is_none_or(|nulls| known.rows.get(at) != Some(&nulls)),
            Test::Compare(op, literal) => {
                let to = |bound: &ArrayRef| -> Result<Option<Ordering>> {
                    if bound.is_null(at) {
                        return Ok(None);
                    }
                    Ok(order(bound, literal)?(at))
                };
                let bounds = to(&known.mins).and_then(|min| Ok((min, to(&known.maxes)?)));
                let (min, max) = bounds.map_err(|error| error.context("column", &self.column))?;
                op.may_hold(min, max)
            }
        })
    }

    fn holds_for(&self, value: &Value) -> Result<bool> {
        let (op, literal) = match (&self.test, value.view()) {
            (Test::IsNull, found) => return Ok(found == View::Null),
            (Test::NotNull, found) => return Ok(found != View::Null),
            (_, View::Null) => return Ok(false),
            (Test::Compare(op, literal), _) => (op, literal),
        };
        let order = match (value.view(), literal) {
            (View::Int(value), Literal::Int(literal)) => Some(value.cmp(literal)),
            (View::Int(value), Literal::Float(literal)) => int_to_float(value.into(), *literal),
            (View::Str(value), Literal::Text(literal)) => Some(value.cmp(literal.as_str())),
            (View::Int(value), Literal::Text(literal)) => Some(value.to_string().as_str().cmp(literal)),
            (found, literal) => {
                let message = format!("cannot compare {found:?} of the path with {literal:?}");
                return Err(Error::invalid(message).context("column", &self.column));
            }
        };
        Ok(op.holds(order))
    }
}

type Order<'a> = Box<dyn Fn(usize) -> Option<Ordering> + 'a>;

/// How the values of a column, none of them null, stand to a literal.
fn order<'a>(column: &'a ArrayRef, literal: &'a Literal) -> Result<Order<'a>> {
    use DataType::*;
    Ok(match (column.data_type(), literal) {
        (Boolean, Literal::Bool(literal)) => {
            let column = column.as_boolean();
            Box::new(move |at| Some(column.value(at).cmp(literal)))
        }
        (Float16, _) => floats::<Float16Type>(column, literal, |value| value.to_f64())?,
        (Float32, _) => floats::<Float32Type>(column, literal, f64::from)?,
        (Float64, _) => floats::<Float64Type>(column, literal, |value| value)?,
        (Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | FixedSizeBinary(_), _) => {
            texts(column, literal)?
        }
        (Dictionary(_, _), _) => {
            let column = column.as_any_dictionary();
            let keys = if column.values().is_empty() { Vec::new() } else { column.normalized_keys() };
            let values = order(column.values(), literal)?;
            Box::new(move |at| values(*keys.get(at)?))
        }
        _ => integers(column, literal)?,
    })
}

fn unlike(column: &ArrayRef, literal: &Literal) -> Error {
    Error::invalid(format!("cannot compare a column of type {} with {literal:?}", column.data_type()))
}

fn integers<'a>(column: &'a ArrayRef, literal: &'a Literal) -> Result<Order<'a>> {
    use DataType::*;
    fn of<'a, T: ArrowPrimitiveType<Native: Into<i128>>>(
        column: &'a ArrayRef,
        literal: &'a Literal,
    ) -> Result<Order<'a>> {
        let values = column.as_primitive::<T>().values();
        match *literal {
            Literal::Int(literal) => {
                let literal = i128::from(literal);
                Ok(Box::new(move |at| Some(values[at].into().cmp(&literal))))
            }
            Literal::Float(literal) => Ok(Box::new(move |at| int_to_float(values[at].into(), literal))),
            _ => Err(unlike(column, literal)),
        }
    }
    match column.data_type() {
        Int8 => of::<Int8Type>(column, literal),
        Int16 => of::<Int16Type>(column, literal),
        Int32 => of::<Int32Type>(column, literal),
        Int64 => of::<Int64Type>(column, literal),
        UInt8 => of::<UInt8Type>(column, literal),
        UInt16 => of::<UInt16Type>(column, literal),
        UInt32 => of::<UInt32Type>(column, literal),
        UInt64 => of::<UInt64Type>(column, literal),
        Date32 => of::<Date32Type>(column, literal),
        Date64 => of::<Date64Type>(column, literal),
        Time32(TimeUnit::Second) => of::<Time32SecondType>(column, literal),
        Time32(_) => of::<Time32MillisecondType>(column, literal),
        Time64(TimeUnit::Microsecond) => of::<Time64MicrosecondType>(column, literal),
        Time64(_) => of::<Time64NanosecondType>(column, literal),
        Timestamp(TimeUnit::Second, _) => of::<TimestampSecondType>(column, literal),
        Timestamp(TimeUnit::Millisecond, _) => of::<TimestampMillisecondType>(column, literal),
        Timestamp(TimeUnit::Microsecond, _) => of::<TimestampMicrosecondType>(column, literal),
        Timestamp(TimeUnit::Nanosecond, _) => of::<TimestampNanosecondType>(column, literal),
        Duration(TimeUnit::Second) => of::<DurationSecondType>(column, literal),
        Duration(TimeUnit::Millisecond) => of::<DurationMillisecondType>(column, literal),
        Duration(TimeUnit::Microsecond) => of::<DurationMicrosecondType>(column, literal),
        Duration(TimeUnit::Nanosecond) => of::<DurationNanosecondType>(column, literal),
        Interval(IntervalUnit::YearMonth) => of::<arrow_array::types::IntervalYearMonthType>(column, literal),
        _ => Err(unlike(column, literal)),
    }
}

fn floats<'a, T: ArrowPrimitiveType>(
    column: &'a ArrayRef,
    literal: &'a Literal,
    widen: impl Fn(T::Native) -> f64 + 'a,
) -> Result<Order<'a>> {
    let values = column.as_primitive::<T>().values();
    match *literal {
        Literal::Float(literal) => Ok(Box::new(move |at| widen(values[at]).partial_cmp(&literal))),
        Literal::Int(literal) => {
            let literal = i128::from(literal);
            Ok(Box::new(move |at| int_to_float(literal, widen(values[at])).map(Ordering::reverse)))
        }
        _ => Err(unlike(column, literal)),
    }
}

fn texts<'a>(column: &'a ArrayRef, literal: &'a Literal) -> Result<Order<'a>> {
    use DataType::*;
    let Literal::Text(literal) = literal else { return Err(unlike(column, literal)) };
    let literal = literal.as_bytes();
    macro_rules! compare {
        ($values:expr) => {{
            let values = $values;
            Box::new(move |at| {
                let value: &[u8] = values.value(at).as_ref();
                Some(value.cmp(literal))
            })
        }};
    }
    Ok(match column.data_type() {
        Utf8 => compare!(column.as_string::<i32>()),
        LargeUtf8 => compare!(column.as_string::<i64>()),
        Utf8View => compare!(column.as_string_view()),
        Binary => compare!(column.as_binary::<i32>()),
        LargeBinary => compare!(column.as_binary::<i64>()),
        BinaryView => compare!(column.as_binary_view()),
        _ => compare!(column.as_fixed_size_binary()),
    })
}

/// The order of an integer and a float, exactly.
fn int_to_float(int: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // A float beyond the range becomes the nearest integer, which no column reaches.
    let whole = float.floor();
    Some(int.cmp(&(whole as i128)).then(if float > whole { Ordering::Less } else { Ordering::Equal }))
}

/// A mask as an array, for the library's filter.
pub(crate) fn mask(passed: BooleanBuffer) -> BooleanArray {
    BooleanArray::new(passed, None)
}
