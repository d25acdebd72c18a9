//! `unique`: each sample once, by its fields or by what expressions give.
//!
//! ```toml
//! [unique]
//! page = "choose"
//! examples = ['''forebay head "range 100 | unique 'value % 3'"''']
//! counted = false
//!
//! [[unique.ending]]
//! graph = "range N | unique 'value % 11'"
//! instead = "range N | unique 'value / 2'"
//! why = "behind the eleventh sample it looks for a twelfth for ever"
//! ```

mod seen;

use forebay_core::{
    Context, DataPipe, Drops, Error, Io, Key, OneOrMany, PipeAudit, PipeInfo, Result, Schema, State,
    StateExt, Step, Stream, Value, options,
};
use xxhash_rust::xxh3::xxh3_128;

use self::seen::Seen;
use crate::plumbing::{
    expression::{self, Running},
    sift::sift,
};

options! {
    /// Options of `unique`.
    pub struct UniqueOptions {
        /// One expression or several that tell samples apart: `url`, `lowerAscii(text)`; null for all fields.
        by: Option<OneOrMany<String>> = null;
        /// The most different samples to remember, at about 40 bytes each; one more is an error.
        most: usize = 10000000, in 1..=100000000000;
    }
}

/// Leaves out the samples of which the fields, or what expressions give, were there before in this pass.
///
/// What was there is remembered as hashes of 128 bits (XXH3). Numbers are the same by what they are, whatever their types; structs,
/// and samples told apart by all fields, in any order of their names; tensors by type, shape and bytes. State: how many samples were
/// taken; a resume reads all of them again, which keeps a saved position small.
#[derive(Debug)]
pub struct Unique {
    by: Option<Vec<Running>>,
    most: usize,
    seen: Seen,
    /// How many samples were taken, and up to which of them all was given and told before a restore.
    taken: u64,
    settled: u64,
    /// By all fields: the last schema, and the places of its fields in the order of their names.
    known: Option<(Schema, Vec<usize>)>,
    /// Memory for what is hashed, and for the hashes of the samples that wait.
    bytes: Vec<u8>,
    ahead: Vec<u128>,
}

/// The version of a saved position: how many samples were taken.
const VERSION: u32 = 1;

impl DataPipe for Unique {
    const INFO: PipeInfo = PipeInfo {
        name: "unique",
        summary: "Leaves out samples that came before, by their fields or by expressions",
        also: &["distinct", "dedup"],
        audit: PipeAudit { drops: Drops::Always, ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = UniqueOptions;

    fn new(options: UniqueOptions) -> Result<Self> {
        let by =
            options.by.map(|by| by.0.iter().map(|text| Running::new(text, "by")).collect()).transpose()?;
        if by.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::invalid("found no expression, expected one or null").context("option", "by"));
        }
        let (seen, known) = (Seen::default(), None);
        let (bytes, ahead) = (Vec::new(), Vec::new());
        Ok(Self { by, most: options.most, seen, taken: 0, settled: 0, known, bytes, ahead })
    }
}

impl Stream for Unique {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.seen.clear();
        (self.taken, self.settled) = (0, 0);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        // What was settled before a restore is only remembered, which takes no room.
        while self.taken < self.settled {
            let Some(input) = io.input(0) else { break };
            let Some((_, key, schema, values)) = input.peek() else { return self.wait(io) };
            // Its error was told before.
            let hash = self.hash(key, schema, values);
            drop(hash.and_then(|hash| self.remember(hash)));
            self.taken += 1;
            input.advance();
        }
        let ahead = self.look_ahead(io);
        let mut hashes = ahead.iter();
        let step = sift(io, |_, key, schema, values| {
            self.taken += 1;
            let hash = match hashes.next() {
                Some(&hash) => hash,
                None => self.hash(key, schema, values)?,
            };
            self.remember(hash)
        });
        self.ahead = ahead;
        match step? {
            Step::Ready => Ok(Step::Ready),
            _ => self.wait(io),
        }
    }

    fn state(&self) -> Result<State> {
        Ok(State::json(VERSION, &self.taken.max(self.settled))?.again(0, self.taken))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.settled = state.parse(VERSION)?;
        Ok(())
    }
}

impl Unique {
    /// What follows when no sample waits.
    fn wait(&mut self, io: &Io) -> Result<Step> {
        if !io.ended(0) {
            return Ok(Step::NeedInput(0));
        }
        let missing = self.settled.saturating_sub(self.taken);
        self.settled = 0;
        if missing > 0 {
            let message = format!("the input ended {missing} samples before the saved position");
            return Err(Error::invalid(message));
        }
        Ok(Step::End)
    }

    /// The hashes of the foremost samples, as many as there is room for, up to one that has none. They are looked for all at once, so that
    /// the memory that each is found in comes while others are on their way.
    fn look_ahead(&mut self, io: &mut Io) -> Vec<u128> {
        let mut hashes = std::mem::take(&mut self.ahead);
        hashes.clear();
        let room = io.room();
        if let Some(input) = io.input(0) {
            let waiting = input.samples().take(room);
            hashes.extend(waiting.map_while(|(_, key, schema, values)| self.hash(key, schema, values).ok()));
        }
        self.seen.touch(&hashes);
        hashes
    }

    // Always: a hash that is handed over in memory has to wait there before it is read.
    #[inline(always)]
    fn hash(&mut self, key: &Key, schema: &Schema, values: &[Value]) -> Result<u128> {
        self.write(key, schema, values)?;
        Ok(xxh3_128(&self.bytes))
    }

    /// Puts what tells a sample apart into `bytes`.
    fn write(&mut self, key: &Key, schema: &Schema, values: &[Value]) -> Result<()> {
        let Self { by, known, bytes, .. } = self;
        bytes.clear();
        if let Some(by) = by {
            for running in by {
                let (expression, places) = running.of(schema);
                expression.write(places, key, schema, values, bytes)?;
            }
            return Ok(());
        }
        let order = match known {
            Some((known, order)) if known.is(schema) => order,
            known => &mut known.insert((schema.clone(), order(schema))).1,
        };
        for &at in order.iter() {
            let (name, value) = (&schema.names()[at], &values[at]);
            bytes.extend(name.as_bytes());
            bytes.push(0xff); // Is in no text, so it ends the name.
            expression::write(value, bytes).map_err(|error| error.context("field", name))?;
        }
        Ok(())
    }

    /// Whether this was not there before.
    fn remember(&mut self, hash: u128) -> Result<bool> {
        if self.seen.len() < self.most {
            return Ok(self.seen.insert(hash));
        }
        if self.seen.contains(hash) {
            return Ok(false);
        }
        let most = self.most;
        let message = format!("found another than the {most} different samples that are remembered");
        Err(Error::limit(message).context("option", "most"))
    }
}

/// The places of all fields, in the order of their names.
fn order(schema: &Schema) -> Vec<usize> {
    let mut order: Vec<_> = (0..schema.len()).collect();
    order.sort_by_key(|&at| schema.names()[at].as_str());
    order
}

#[cfg(test)]
mod tests {
    use forebay_core::{ErrorKind, Options, Sample, random::Rng};

    use super::*;
    use crate::testing::{Drive, Setup, check, check_resume, errors, ints, numbers, sample};

    fn unique(options: &str) -> Unique {
        Unique::new(UniqueOptions::parse(options).unwrap()).unwrap()
    }

    /// Samples of these numbers as `value`, each with its place as `at`.
    fn of(values: &[i64]) -> Vec<Sample> {
        let values = values.iter().zip(0..);
        values
            .map(|(&value, at)| sample(at, &[("at", (at as i64).into()), ("value", value.into())]))
            .collect()
    }

    #[test]
    fn gives_the_first_of_those_that_are_the_same() {
        let mut rng = Rng::new(8, 0);
        for (count, among) in [(0, 1), (1, 1), (40, 1), (40, 9), (25, 1000)] {
            let values: Vec<_> = (0..count).map(|_| rng.below(among) as i64).collect();
            let wanted: Vec<_> = (0..values.len())
                .filter(|&at| !values[..at].contains(&values[at]))
                .map(|at| at as i64)
                .collect();
            let input = of(&values);
            let make = || unique(r#"{"by": "value"}"#);
            assert_eq!(ints(&check(make, &input), "at"), wanted);
            check_resume(make, &input);
            assert_eq!(check(|| unique("{}"), &input), input, "by all fields they differ");
        }
        let input = of(&[5, 5, 6, 7, 8]);
        let make = || unique(r#"{"by": ["value / 2", "at % 2"]}"#);
        assert_eq!(ints(&check(make, &input), "at"), [0, 1, 2, 3, 4]);
        let endless: Vec<_> = of(&(0..40).collect::<Vec<_>>());
        Setup { most: 7, ..Setup::new(&[&endless]) }.check_resume(|| unique(r#"{"by": "value % 9"}"#));
    }

    #[test]
    fn all_fields_count_in_any_order() {
        let fields = |flip: bool, one: i64, other: Value| {
            let mut fields = [("one", one.into()), ("other", other)];
            if flip {
                fields.reverse();
            }
            fields
        };
        let input = [
            sample(0, &fields(false, 1, "x".into())),
            sample(1, &fields(true, 1, "x".into())),
            sample(2, &fields(true, 1, "y".into())),
            sample(3, &fields(false, 1, Value::NULL)),
            sample(4, &[("one", 1_i64.into())]),
            sample(5, &fields(true, 1, Value::NULL)),
            sample(6, &[("one", 1.0.into())]),
        ];
        let out = check(|| unique("{}"), &input);
        assert_eq!(out.iter().map(Sample::uid).collect::<Vec<_>>(), [0, 2, 3, 4]);
        check_resume(|| unique("{}"), &input);
    }

    #[test]
    fn another_than_the_most_is_an_error_and_those_known_stay_so() {
        let input = of(&[1, 2, 1, 3, 2, 4, 1]);
        let make = || unique(r#"{"by": "value", "most": 2}"#);
        let mut drive = Drive::new(make(), &input, 2);
        let found = errors(&mut drive);
        let names = |error: &Error| {
            (error.kind(), error.get("option") == Some("most"), error.get("sample").map(str::to_owned))
        };
        let wanted = |at| (ErrorKind::Limit, true, Some(format!("test#{at}")));
        assert_eq!(found.iter().map(names).collect::<Vec<_>>(), [wanted(3), wanted(5)]);
        assert_eq!(ints(drive.out(), "at"), [0, 1]);
        check_resume(make, &input);
    }

    #[test]
    fn a_sample_that_fails_is_named_once() {
        let mut input = of(&[1, 2, 2, 1, 3]);
        input[1] = sample(1, &[("at", 1_i64.into())]);
        let make = || unique(r#"{"by": "value"}"#);
        let mut drive = Drive::new(make(), &input, 5);
        let found = errors(&mut drive);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].get("sample"), found[0].get("field")), (Some("test#1"), Some("value")));
        let mut late = drive.resume(make());
        assert!(errors(&mut late).is_empty() && late.out().is_empty());
        check_resume(make, &input);
        let odd = [sample(0, &[("x", Value::opaque("thing", 1_u8))])];
        let found = errors(&mut Drive::new(unique("{}"), &odd, 1));
        assert_eq!((found[0].get("sample"), found[0].get("field")), (Some("test#0"), Some("x")));
    }

    #[test]
    fn a_position_is_small_and_asks_for_the_whole_pass() {
        let input = numbers(5000);
        let mut drive = Drive::new(unique("{}"), &input, 64);
        drive.run(64, 4000).unwrap();
        let state = drive.state().unwrap();
        assert!(state.bytes.len() < 8);
        assert_eq!(state.again[0] as usize, drive.taken(0));
        let mut short = Drive::new(unique("{}"), &input[..9], 4);
        let host = crate::testing::small_host();
        let mut pipe = unique("{}");
        pipe.restore(&state, &host.context()).unwrap();
        short.replace(pipe);
        let found = errors(&mut short);
        assert_eq!((found.len(), found[0].kind()), (1, ErrorKind::Invalid));
    }

    #[test]
    fn bad_options_are_refused_by_name() {
        for (options, option) in [(r#"{"most": 0}"#, "most"), (r#"{"by": 3}"#, "by")] {
            assert_eq!(UniqueOptions::parse(options).unwrap_err().get("option"), Some(option));
        }
        for by in [r#"{"by": "value <"}"#, r#"{"by": []}"#] {
            let error = Unique::new(UniqueOptions::parse(by).unwrap()).unwrap_err();
            assert_eq!(error.get("option"), Some("by"));
        }
    }
}
