//! The macros that go over a list: `all`, `exists`, `exists_one`, `map`, `filter`.

use forebay_core::{Error, Result};

use super::{
    node::{Local, Node, Row, truth},
    val::Val,
};

/// A value that is made of the items of a list, one after the other.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) list: Node,
    pub(super) start: Node,
    /// Whether to go on; with the item and what was made as variables, the latter the inner one.
    pub(super) going: Node,
    pub(super) step: Step,
    /// With what was made as the variable.
    pub(super) result: Node,
}

/// What an item does.
#[derive(Debug)]
pub(super) enum Step {
    /// What was made becomes this.
    Becomes(Node),
    /// This is put behind the list that was made, where the condition holds.
    Push(Option<Node>, Node),
}

impl Fold {
    pub(super) fn eval<'a>(&'a self, row: &Row<'a>, locals: Option<&Local<'_, 'a>>) -> Result<Val<'a>> {
        let list = self.list.eval(row, locals)?;
        // Of a struct macros see the names.
        let names;
        let items: &mut dyn Iterator<Item = Val<'a>> = match (list.items(), list.names()) {
            (Some(items), _) => &mut { items },
            (None, Some(found)) => {
                names = found.into_iter().map(|name| Val::Text(name.to_owned().into())).collect::<Vec<_>>();
                &mut names.into_iter()
            }
            (None, None) => {
                return Err(Error::invalid(format!("a macro goes over a list, found {}", list.kind())));
            }
        };
        let mut made = self.start.eval(row, locals)?;
        for item in items {
            row.draws.item()?;
            let outer = Local { value: &item, outer: locals };
            let next = {
                let both = Local { value: &made, outer: Some(&outer) };
                if matches!(self.going.eval(row, Some(&both)), Ok(Val::Bool(false))) {
                    break;
                }
                match &self.step {
                    Step::Becomes(node) => Next::Becomes(node.eval(row, Some(&both))?),
                    Step::Push(condition, node) => {
                        let pushes = match condition {
                            Some(condition) => truth(&condition.eval(row, Some(&both))?)?,
                            None => true,
                        };
                        if pushes { Next::Push(node.eval(row, Some(&both))?) } else { Next::Stays }
                    }
                }
            };
            match (next, &mut made) {
                (Next::Becomes(value), made) => *made = value,
                (Next::Push(value), Val::List(list)) => list.push(value),
                (Next::Push(_), _) => return Err(Error::bug("a list that is none")),
                (Next::Stays, _) => {}
            }
        }
        self.result.eval(row, Some(&Local { value: &made, outer: locals }))
    }
}

enum Next<'a> {
    Becomes(Val<'a>),
    Push(Val<'a>),
    Stays,
}
