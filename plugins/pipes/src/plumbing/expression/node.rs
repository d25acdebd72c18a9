//! A compiled expression: a tree that is walked for each sample.

use std::{borrow::Cow, cmp::Ordering};

use forebay_core::{Error, Key, Result, Schema, Value};
use regex::Regex;

use super::{
    draws::Draws,
    fold::Fold,
    functions::Function,
    numbers::{self, Operation},
    val::Val,
};

/// A part of an expression.
#[derive(Debug)]
pub(super) enum Node {
    Literal(Literal),
    /// A field, by its place among those of the expression, and its name.
    Field(usize, Box<str>),
    /// A path of names, as the ways to read it: the field, and the names within it. The first that there is counts.
    Path(Vec<(usize, Vec<Box<str>>)>, Box<str>),
    /// A variable of a macro, by how many stand further in.
    Local(usize),
    Not(Box<Node>),
    Negate(Box<Node>),
    /// `&&`, or `||`, by the truth value that decides it.
    Logic(bool, Box<[Node; 2]>),
    If(Box<[Node; 3]>),
    Equal(bool, Box<[Node; 2]>),
    Compare(Order, Box<[Node; 2]>),
    Calculate(Operation, Box<[Node; 2]>),
    In(Box<[Node; 2]>),
    Index(Box<[Node; 2]>),
    Select(Box<Node>, Box<str>),
    /// Whether there is such a field: `has(a.b)`.
    Has(Box<Node>, Box<str>),
    HasField(usize),
    List(Vec<Node>),
    Map(Vec<(Box<str>, Node)>),
    Matches(Box<Node>, Box<Regex>),
    Call(Function, Vec<Node>),
    Fold(Box<Fold>),
}

/// A value that stands in the expression.
#[derive(Debug)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Text(Box<str>),
    Bytes(Box<[u8]>),
}

/// What two values are compared for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A sample.
pub(super) struct Row<'a> {
    pub(super) places: &'a [Option<usize>],
    pub(super) key: &'a Key,
    pub(super) schema: &'a Schema,
    pub(super) values: &'a [Value],
    pub(super) draws: &'a Draws<'a>,
}

/// A variable, and those around it.
pub(super) struct Local<'s, 'a> {
    pub(super) value: &'s Val<'a>,
    pub(super) outer: Option<&'s Local<'s, 'a>>,
}

impl<'a> Row<'a> {
    /// The field at a place among those of the expression.
    #[inline]
    pub(super) fn field(&self, at: usize, name: &str) -> Result<&'a Value> {
        self.there(at).ok_or_else(|| missing(name, self.schema))
    }

    /// As [`field`](Row::field), if there is such a field.
    #[inline]
    pub(super) fn there(&self, at: usize) -> Option<&'a Value> {
        there(self.places, self.values, at)
    }
}

/// The value of a field at a place among those of the expression, if there is such a field.
#[inline]
pub(super) fn there<'a>(places: &[Option<usize>], values: &'a [Value], at: usize) -> Option<&'a Value> {
    values.get(places.get(at).copied().flatten()?)
}

#[cold]
fn missing(name: &str, schema: &Schema) -> Error {
    crate::select::place(schema, name)
        .err()
        .unwrap_or_else(|| Error::bug("a field that is there was not found"))
}

impl Node {
    /// What it gives for a sample, as it goes into one: fields as they are, and lists without a copy of their own.
    pub(super) fn value(&self, row: &Row) -> Result<Value> {
        match self {
            Self::Field(at, name) => row.field(*at, name).cloned(),
            Self::List(nodes) => {
                let mut items = Vec::with_capacity(nodes.len());
                for node in nodes {
                    // What most items are, straight to where they go.
                    match node {
                        Self::Field(at, name) => items.push(row.field(*at, name)?.clone()),
                        Self::Literal(literal) if let Some(number) = literal.quick() => {
                            items.push(number.into_value());
                        }
                        node => items.push(node.value(row)?),
                    }
                }
                Ok(Value::list(items))
            }
            node => node.eval(row, None).map(Val::into_value),
        }
    }

    /// What it gives for a sample.
    pub(super) fn eval<'a>(&'a self, row: &Row<'a>, locals: Option<&Local<'_, 'a>>) -> Result<Val<'a>> {
        let one = |node: &'a Node| node.eval(row, locals);
        let two = |nodes: &'a [Node; 2]| Ok::<_, Error>((one(&nodes[0])?, one(&nodes[1])?));
        Ok(match self {
            Self::Field(at, name) => Val::of(row.field(*at, name)?),
            Self::Literal(literal) => literal.value(),
            Self::Compare(order, nodes) => {
                let (left, right) = two(nodes)?;
                Val::Bool(left.compare(&right)?.is_some_and(|found| order.holds(found)))
            }
            Self::Equal(wanted, nodes) => {
                let (left, right) = two(nodes)?;
                Val::Bool(left.equals(&right) == *wanted)
            }
            Self::Logic(decides, nodes) => logic(*decides, one(&nodes[0]), || one(&nodes[1]))?,
            Self::Calculate(operation, nodes) => {
                let (left, right) = two(nodes)?;
                joined(*operation, left, right)?
            }
            Self::Not(node) => Val::Bool(!truth(&one(node)?)?),
            Self::Negate(node) => numbers::calculate(Operation::Subtract, &Val::Int(0), &one(node)?)
                .map(|value| if let Val::Float(0.0) = value { Val::Float(-0.0) } else { value })?,
            Self::If(nodes) => one(if truth(&one(&nodes[0])?)? { &nodes[1] } else { &nodes[2] })?,
            Self::Path(ways, name) => path(ways, name, row)?,
            Self::Local(out) => local(*out, locals)?,
            Self::In(nodes) => {
                let (item, list) = two(nodes)?;
                Val::Bool(is_in(&item, &list)?)
            }
            Self::Index(nodes) => {
                let (list, at) = two(nodes)?;
                index(&list, &at)?
            }
            Self::Select(node, name) => select(&one(node)?, name)?,
            Self::Has(node, name) => Val::Bool(one(node)?.get(name).is_some()),
            Self::HasField(at) => Val::Bool(row.places.get(*at).is_some_and(Option::is_some)),
            Self::List(nodes) => Val::List(nodes.iter().map(one).collect::<Result<_>>()?),
            Self::Map(fields) => {
                let fields = fields.iter().map(|(name, node)| Ok((&**name, one(node)?)));
                Val::Map(fields.collect::<Result<_>>()?)
            }
            Self::Matches(node, pattern) => match one(node)? {
                Val::Text(text) => Val::Bool(pattern.is_match(&text)),
                other => return Err(Error::invalid(format!("`matches` takes text, found {}", other.kind()))),
            },
            Self::Call(function, nodes) => {
                let values = nodes.iter().map(one).collect::<Result<Vec<_>>>()?;
                function.call(values, row)?
            }
            Self::Fold(fold) => fold.eval(row, locals)?,
        })
    }
}

impl Literal {
    #[inline]
    fn value(&self) -> Val<'_> {
        match self {
            Self::Null => Val::Null,
            Self::Bool(truth) => Val::Bool(*truth),
            Self::Int(number) => Val::Int(*number),
            Self::UInt(number) => Val::UInt(*number),
            Self::Float(number) => Val::Float(*number),
            Self::Text(text) => Val::Text(Cow::Borrowed(text)),
            Self::Bytes(bytes) => Val::Bytes(bytes),
        }
    }
}

impl Order {
    #[inline]
    pub(super) fn holds(self, found: Ordering) -> bool {
        match self {
            Self::Less => found.is_lt(),
            Self::LessOrEqual => found.is_le(),
            Self::Greater => found.is_gt(),
            Self::GreaterOrEqual => found.is_ge(),
        }
    }
}

pub(super) fn truth(value: &Val<'_>) -> Result<bool> {
    match value {
        Val::Bool(truth) => Ok(*truth),
        other => Err(Error::invalid(format!("expected true or false, found {}", other.kind()))),
    }
}

/// `&&` and `||`: what decides does so on either side, also where the other side fails.
fn logic<'a>(
    decides: bool,
    left: Result<Val<'a>>,
    right: impl FnOnce() -> Result<Val<'a>>,
) -> Result<Val<'a>> {
    let left = left.and_then(|value| truth(&value));
    if matches!(left, Ok(found) if found == decides) {
        return Ok(Val::Bool(decides));
    }
    match (left, right().and_then(|value| truth(&value))) {
        (_, Ok(found)) if found == decides => Ok(Val::Bool(decides)),
        (Ok(_), Ok(found)) => Ok(Val::Bool(found)),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// Texts and lists are joined by `+`, all others are numbers.
fn joined<'a>(operation: Operation, left: Val<'a>, right: Val<'a>) -> Result<Val<'a>> {
    match (operation, left, right) {
        (Operation::Add, Val::Text(left), Val::Text(right)) => Ok(Val::Text(left + right)),
        (Operation::Add, left, right) if left.items().is_some() && right.items().is_some() => {
            let items = [&left, &right].into_iter().filter_map(Val::items).flatten();
            Ok(Val::List(items.collect()))
        }
        (operation, left, right) => numbers::calculate(operation, &left, &right),
    }
}

fn path<'a>(ways: &'a [(usize, Vec<Box<str>>)], name: &str, row: &Row<'a>) -> Result<Val<'a>> {
    let found = ways.iter().find_map(|(at, names)| row.there(*at).map(|value| (value, names)));
    let Some((value, names)) = found else { return Err(missing(name, row.schema)) };
    names.iter().try_fold(Val::of(value), |value, name| select(&value, name))
}

fn local<'a>(out: usize, locals: Option<&Local<'_, 'a>>) -> Result<Val<'a>> {
    let found = (0..out).try_fold(locals, |local, _| local.map(|local| local.outer)).flatten();
    found.map(|local| local.value.clone()).ok_or_else(|| Error::bug("a variable of no macro"))
}

pub(super) fn select<'a>(value: &Val<'a>, name: &str) -> Result<Val<'a>> {
    value.get(name).ok_or_else(|| match value.names() {
        Some(names) => Error::invalid(format!("no `{name}` in a struct of: {}", names.join(", "))),
        None => Error::invalid(format!("`.{name}` of {}, expected a struct", value.kind())),
    })
}

fn is_in(item: &Val<'_>, list: &Val<'_>) -> Result<bool> {
    if let Some(mut items) = list.items() {
        return Ok(items.any(|other| other.equals(item)));
    }
    match (list.names(), item) {
        (Some(names), Val::Text(name)) => Ok(names.contains(&&**name)),
        _ => Err(Error::invalid(format!("`in` looks into a list or a struct, found {}", list.kind()))),
    }
}

fn index<'a>(list: &Val<'a>, at: &Val<'a>) -> Result<Val<'a>> {
    match (list.items(), numbers::of(at), at) {
        (Some(items), Some(numbers::Number::Whole(at)), _) => {
            let found = usize::try_from(at).ok().and_then(|at| items.at(at));
            found.ok_or_else(|| Error::invalid(format!("no item {at} in a list of {}", items.len())))
        }
        (None, _, Val::Text(name)) => select(list, name),
        _ => Err(Error::invalid(format!("{} has no item at {}", list.kind(), at.kind()))),
    }
}
