//! From the parser's tree to ours: names become places, operators what they do; what cannot be run is refused here.

use cel::{
    common::ast::{
        CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, SelectExpr,
        operators,
    },
    parser::Parser,
};
use forebay_core::{Error, Result};
use regex::Regex;

use super::{
    fold::{Fold, Step},
    functions::Function,
    node::{Literal, Node, Order},
    numbers::Operation,
};

/// Stands for the whole sample: `sample['a name with spaces']`, `has(sample.text)`.
const SAMPLE: &str = "sample";
/// What the parser puts around a condition that an error does not end.
const CONDITION: &str = "@not_strictly_false";

/// The longest expression, in bytes, and the most parts within each other: parser and tree are walked by recursion.
const LONGEST: usize = 4096;
const DEEPEST: usize = 128;

/// The tree for an expression, and the fields it may name.
pub(super) fn compile(text: &str) -> Result<(Node, Vec<String>)> {
    if text.len() > LONGEST {
        return Err(Error::limit(format!(
            "an expression of {} bytes, at most {LONGEST} are read",
            text.len()
        )));
    }
    let parsed = Parser::new().enable_ident_escape_syntax(true).parse(text).map_err(|errors| {
        let first = errors.errors.first();
        let (line, column) = first.map_or((1, 1), |error| error.pos);
        let why = first.map_or_else(|| "it cannot be read".to_owned(), |error| error.msg.clone());
        let error = Error::invalid(format!("`{text}` is no expression: {why}"));
        error.context("column", column).context("line", line)
    })?;
    let mut compiler = Compiler { fields: Vec::new(), locals: Vec::new(), depth: 0 };
    let node = compiler.node(&parsed).map_err(|error| error.context("expression", text))?;
    Ok((node, compiler.fields))
}

struct Compiler {
    fields: Vec<String>,
    /// The variables of the macros around, the innermost last.
    locals: Vec<String>,
    /// How many parts are around the one being compiled.
    depth: usize,
}

impl Compiler {
    fn node(&mut self, part: &IdedExpr) -> Result<Node> {
        if self.depth == DEEPEST {
            return Err(Error::limit(format!(
                "more than {DEEPEST} parts of the expression lie within each other"
            )));
        }
        self.depth += 1;
        let node = self.inner(part);
        self.depth -= 1;
        node
    }

    fn inner(&mut self, part: &IdedExpr) -> Result<Node> {
        match &part.expr {
            Expr::Literal(literal) => Ok(Node::Literal(literal_of(literal))),
            Expr::Ident(name) => Ok(match self.local(name) {
                Some(local) => local,
                None => Node::Field(self.field(name), name.as_str().into()),
            }),
            Expr::Select(select) => self.select(part, select),
            Expr::Call(call) => self.call(part, call),
            Expr::List(ListExpr { elements, .. }) => {
                Ok(Node::List(elements.iter().map(|element| self.node(element)).collect::<Result<_>>()?))
            }
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(comprehension) => self.fold(comprehension),
            Expr::Struct(made) => {
                Err(Error::unsupported(format!("`{}{{…}}`: there are no message types here", made.type_name)))
            }
            Expr::Unspecified => Err(Error::invalid("found nothing")),
        }
    }

    fn nodes<const COUNT: usize>(&mut self, parts: &[IdedExpr]) -> Result<Box<[Node; COUNT]>> {
        let nodes = parts.iter().map(|part| self.node(part)).collect::<Result<Vec<_>>>()?;
        let found = nodes.len();
        nodes
            .try_into()
            .map_err(|_| Error::invalid(format!("an operator takes {COUNT} values, found {found}")))
    }

    /// The place of a field among those of the expression.
    fn field(&mut self, name: &str) -> usize {
        self.fields.iter().position(|known| known == name).unwrap_or_else(|| {
            self.fields.push(name.to_owned());
            self.fields.len() - 1
        })
    }

    fn local(&self, name: &str) -> Option<Node> {
        let at = self.locals.iter().rposition(|known| known == name)?;
        Some(Node::Local(self.locals.len() - 1 - at))
    }

    fn select(&mut self, part: &IdedExpr, select: &SelectExpr) -> Result<Node> {
        let SelectExpr { operand, field, test } = select;
        if *test {
            if matches!(&operand.expr, Expr::Ident(name) if name == SAMPLE) {
                return Ok(Node::HasField(self.field(field)));
            }
            return Ok(Node::Has(Box::new(self.node(operand)?), field.as_str().into()));
        }
        let mut names = Vec::new();
        if !path_of(part, &mut names) || self.local(&names[0]).is_some() {
            return Ok(Node::Select(Box::new(self.node(operand)?), field.as_str().into()));
        }
        // The longest name that is a field counts.
        let within = |names: &[String]| names.iter().map(|name| name.as_str().into()).collect();
        let mut ways = Vec::new();
        for from in [0, 1] {
            if from == 1 && names[0] != SAMPLE {
                break;
            }
            for to in (from + 1..=names.len()).rev() {
                ways.push((self.field(&names[from..to].join(".")), within(&names[to..])));
            }
        }
        Ok(Node::Path(ways, names.join(".").into()))
    }

    fn map(&mut self, map: &MapExpr) -> Result<Node> {
        let mut fields: Vec<(Box<str>, Node)> = Vec::new();
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                return Err(Error::invalid("expected `{'name': value}`"));
            };
            let Expr::Literal(LiteralValue::String(name)) = &entry.key.expr else {
                return Err(Error::unsupported("the names in `{'name': value}` are texts that stand there"));
            };
            if fields.iter().any(|(known, _)| **known == *name.inner()) {
                return Err(Error::invalid(format!("`{}` stands twice in one struct", name.inner())));
            }
            fields.push((name.inner().into(), self.node(&entry.value)?));
        }
        Ok(Node::Map(fields))
    }

    fn call(&mut self, part: &IdedExpr, call: &CallExpr) -> Result<Node> {
        use operators::{
            ADD, CONDITIONAL, DIVIDE, EQUALS, GREATER, GREATER_EQUALS, IN, INDEX, LESS, LESS_EQUALS,
            LOGICAL_AND, LOGICAL_NOT, LOGICAL_OR, MODULO, MULTIPLY, NEGATE, NOT_EQUALS, SUBSTRACT,
        };
        let CallExpr { func_name, target, args } = call;
        if let Some(target) = target {
            let values = std::iter::once(&**target).chain(args).collect::<Vec<_>>();
            return self.function(func_name, &values);
        }
        Ok(match func_name.as_str() {
            LOGICAL_AND => Node::Logic(false, self.nodes(args)?),
            LOGICAL_OR => Node::Logic(true, self.nodes(args)?),
            LOGICAL_NOT => {
                let [node] = *self.nodes(args)?;
                Node::Not(Box::new(node))
            }
            NEGATE => {
                let [node] = *self.nodes(args)?;
                Node::Negate(Box::new(node))
            }
            CONDITION => {
                let [node] = *self.nodes(args)?;
                node
            }
            CONDITIONAL => Node::If(self.nodes(args)?),
            EQUALS => Node::Equal(true, self.nodes(args)?),
            NOT_EQUALS => Node::Equal(false, self.nodes(args)?),
            LESS => Node::Compare(Order::Less, self.nodes(args)?),
            LESS_EQUALS => Node::Compare(Order::LessOrEqual, self.nodes(args)?),
            GREATER => Node::Compare(Order::Greater, self.nodes(args)?),
            GREATER_EQUALS => Node::Compare(Order::GreaterOrEqual, self.nodes(args)?),
            ADD => Node::Calculate(Operation::Add, self.nodes(args)?),
            SUBSTRACT => Node::Calculate(Operation::Subtract, self.nodes(args)?),
            MULTIPLY => Node::Calculate(Operation::Multiply, self.nodes(args)?),
            DIVIDE => Node::Calculate(Operation::Divide, self.nodes(args)?),
            MODULO => Node::Calculate(Operation::Remainder, self.nodes(args)?),
            IN => Node::In(self.nodes(args)?),
            INDEX => match (&args[..], named(args)) {
                ([of, _], Some(name)) if matches!(&of.expr, Expr::Ident(text) if text == SAMPLE) => {
                    Node::Field(self.field(name), name.into())
                }
                _ => Node::Index(self.nodes(args)?),
            },
            name => {
                return self.function(name, &args.iter().collect::<Vec<_>>()).map_err(|error| {
                    if name.starts_with('_') || name.starts_with('@') {
                        Error::unsupported(format!("the operator `{name}` (part {})", part.id))
                    } else {
                        error
                    }
                });
            }
        })
    }

    fn function(&mut self, name: &str, values: &[&IdedExpr]) -> Result<Node> {
        if name == "matches" {
            let [text, pattern] = values else {
                return Err(Error::invalid("`matches` takes a text and a pattern: `text.matches('…')`"));
            };
            let Expr::Literal(LiteralValue::String(pattern)) = &pattern.expr else {
                return Err(Error::unsupported("the pattern of `matches` is a text that stands there"));
            };
            let pattern = Regex::new(pattern.inner()).map_err(|error| Error::invalid(error.to_string()))?;
            return Ok(Node::Matches(Box::new(self.node(text)?), Box::new(pattern)));
        }
        let function = Function::find(name, values.len())?;
        Ok(Node::Call(function, values.iter().map(|value| self.node(value)).collect::<Result<_>>()?))
    }

    fn fold(&mut self, made: &ComprehensionExpr) -> Result<Node> {
        let ComprehensionExpr { iter_range, iter_var, iter_var2, accu_var, .. } = made;
        if iter_var2.is_some() {
            return Err(Error::unsupported("a macro with two variables"));
        }
        let (list, start) = (self.node(iter_range)?, self.node(&made.accu_init)?);
        self.locals.extend([iter_var.clone(), accu_var.clone()]);
        let inner =
            self.node(&made.loop_cond).and_then(|going| Ok((going, self.step(&made.loop_step, accu_var)?)));
        self.locals.truncate(self.locals.len() - 2);
        let (going, step) = inner?;
        self.locals.push(accu_var.clone());
        let result = self.node(&made.result);
        self.locals.pop();
        Ok(Node::Fold(Box::new(Fold { list, start, going, step, result: result? })))
    }

    /// What an item does: most macros that make lists add to one, which need not be copied for it.
    fn step(&mut self, step: &IdedExpr, accu: &str) -> Result<Step> {
        if let Some(item) = added(step, accu) {
            return Ok(Step::Push(None, self.node(item)?));
        }
        if let Expr::Call(CallExpr { func_name, args, .. }) = &step.expr
            && let (operators::CONDITIONAL, [condition, adds, stays]) = (func_name.as_str(), &args[..])
            && let Some(item) = added(adds, accu)
            && matches!(&stays.expr, Expr::Ident(name) if name == accu)
        {
            return Ok(Step::Push(Some(self.node(condition)?), self.node(item)?));
        }
        Ok(Step::Becomes(self.node(step)?))
    }
}

/// The item in `accu + [item]`.
fn added<'e>(part: &'e IdedExpr, accu: &str) -> Option<&'e IdedExpr> {
    let Expr::Call(CallExpr { func_name, args, .. }) = &part.expr else { return None };
    let (operators::ADD, [list, added]) = (func_name.as_str(), &args[..]) else { return None };
    let (Expr::Ident(name), Expr::List(ListExpr { elements, .. })) = (&list.expr, &added.expr) else {
        return None;
    };
    match &elements[..] {
        [item] if name == accu => Some(item),
        _ => None,
    }
}

/// The names in `a.b.c`, if it is nothing else.
fn path_of(part: &IdedExpr, names: &mut Vec<String>) -> bool {
    match &part.expr {
        Expr::Ident(name) => {
            names.push(name.clone());
            true
        }
        Expr::Select(SelectExpr { operand, field, test: false }) if path_of(operand, names) => {
            names.push(field.clone());
            true
        }
        _ => false,
    }
}

/// The text in `of['text']`.
fn named(args: &[IdedExpr]) -> Option<&str> {
    match args {
        [_, IdedExpr { expr: Expr::Literal(LiteralValue::String(name)), .. }] => Some(name.inner()),
        _ => None,
    }
}

fn literal_of(literal: &LiteralValue) -> Literal {
    match literal {
        LiteralValue::Null => Literal::Null,
        LiteralValue::Boolean(truth) => Literal::Bool(*truth.inner()),
        LiteralValue::Int(number) => Literal::Int(*number.inner()),
        LiteralValue::UInt(number) => Literal::UInt(*number.inner()),
        LiteralValue::Double(number) => Literal::Float(*number.inner()),
        LiteralValue::String(text) => Literal::Text(text.inner().into()),
        LiteralValue::Bytes(bytes) => Literal::Bytes(bytes.inner().into()),
    }
}
