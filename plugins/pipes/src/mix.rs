//! `mix`: samples of several inputs, drawn by weight.
//!
//! ```toml
//! [mix]
//! page = "streams"
//! examples = ['forebay head -n 3 "range @web 300 ; range @books 100 ; mix <web, books> [3, 1] tag=from names=[web, books]"']
//! cases = [
//!     "range @a N ; range @b N start=-5 step=3 ; mix <a, b> weights=[3, 1] tag=from",
//!     "range @a N ; range @b N start=-5 ; mix <a, b> weights=[3, 1] draw=proportional",
//! ]
//! counted = false
//! ```

use forebay_core::{
    Condition, Context, DataPipe, Error, Io, Length, PipeAudit, PipeInfo, PipeLayout, PipeOrder, Randomness,
    Result, Sample, Schema, State, StateExt, Step, Str, Stream, Uids, Value, options, random::Rngs,
};

use crate::select::repeated;

options! {
    /// Options of `mix`.
    pub struct MixOptions {
        /// How often to draw from each input, in proportion to the others: a number for each; null for all alike.
        weights: Option<Vec<f64>> = null;
        /// When to stop. `cycle_until_all_exhausted` starts ended inputs over until each has ended once.
        /// `all_exhausted` gives each sample once. `first_exhausted` stops with the first input that ends.
        /// `cycle_forever` never stops.
        stop: String = "cycle_until_all_exhausted",
            one_of ["cycle_until_all_exhausted", "all_exhausted", "first_exhausted", "cycle_forever"];
        /// A new field for the input that a sample came from; null for none.
        tag: Option<String> = null;
        /// The names of the inputs in `tag`; null for their numbers, from 0.
        names: Option<Vec<String>> = null;
        /// How to draw. `sampled`: at random. `proportional`: in an order in which each input has its share at
        /// every moment, rounded down or up.
        draw: String = "sampled", one_of ["sampled", "proportional"];
        /// The numbers of samples after which the weights in `then` apply, rising.
        after: Vec<u64> = [];
        /// The weights after each number in `after`: a number for each input, for one number after the other.
        then: Vec<f64> = [];
    }
}

/// Draws, for each sample, the input to take it from.
///
/// The draws depend on seed, epoch, pass, node and their number, never on which input is ready; proportional ones on the
/// weights alone. That an input has ended is noticed when it is drawn the next time.
#[derive(Debug)]
pub struct Mix {
    /// For each input, and that again for each time at which others apply.
    weights: Option<Vec<f64>>,
    /// After how many samples the next ones apply.
    after: Vec<u64>,
    /// Of proportional draws, the shares so far.
    shares: Option<Shares>,
    stop: Stop,
    tag: Option<Str>,
    names: Option<Vec<String>>,
    /// How many draws were settled.
    drawn: u64,
    inputs: Vec<Input>,
    /// Whether an error ended the stream.
    failed: bool,
    sample: Sample,
    /// The last schema without the tag, and with it.
    tagged: Option<(Schema, Schema)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stop {
    UntilAll,
    All,
    First,
    Never,
}

/// What each input gave since the weights are what they are, and all inputs that are left were drawn by them.
#[derive(Debug, Clone, Default)]
struct Shares {
    weights: Vec<f64>,
    given: Vec<u64>,
}

/// What is known of an input; a saved position holds the draws and the same four for each.
#[derive(Debug, Clone, Copy, Default)]
struct Input {
    pass: u64,
    /// Whether this pass has given a sample.
    gave: bool,
    /// Whether it has ended once.
    exhausted: bool,
    /// Whether it is drawn no more.
    out: bool,
}

/// A saved position: how many draws were settled, each input's fields, and the bits of the weights and the numbers of the shares.
type Position = (u64, Vec<(u64, bool, bool, bool)>, Vec<u64>, Vec<u64>);

impl DataPipe for Mix {
    const INFO: PipeInfo = PipeInfo {
        name: "mix",
        summary: "Samples of several inputs, drawn by weight",
        also: &["sample_multiplexer", "sample_from_datasets"],
        order: PipeOrder {
            draws: Randomness::If(&[Condition::Is("draw", "sampled")]),
            rewinds: true,
            ..PipeOrder::DEFAULT
        },
        layout: PipeLayout { inputs: (1, u32::MAX), per_input: &["weights", "names"], ..PipeLayout::DEFAULT },
        audit: PipeAudit { uids: Uids::Derived, ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = MixOptions;

    fn new(options: MixOptions) -> Result<Self> {
        check(&options)?;
        let MixOptions { weights, stop, tag, names, draw, after, then } = options;
        let weights = weights.map(|weights| [weights, then].concat());
        let stop = match stop.as_str() {
            "all_exhausted" => Stop::All,
            "first_exhausted" => Stop::First,
            "cycle_forever" => Stop::Never,
            _ => Stop::UntilAll,
        };
        let shares = (draw == "proportional").then(Shares::default);
        let (inputs, sample) = (Vec::new(), Sample::default());
        let tag = tag.map(Str::from);
        Ok(Self {
            weights,
            after,
            shares,
            stop,
            tag,
            names,
            drawn: 0,
            inputs,
            failed: false,
            sample,
            tagged: None,
        })
    }
}

/// Whether the options go together.
fn check(options: &MixOptions) -> Result<()> {
    let MixOptions { weights, names, after, then, tag, .. } = options;
    let refuse = |option, message: String| Err(Error::invalid(message).context("option", option));
    let each = weights.as_ref().map_or(0, Vec::len);
    for (option, weights) in [("weights", weights.as_deref().unwrap_or_default()), ("then", then)] {
        if let Some(wrong) = weights.iter().find(|weight| !(weight.is_finite() && **weight > 0.0)) {
            return refuse(option, format!("found a weight of {wrong}, expected one above 0"));
        }
        if weights.chunks(each.max(1)).any(|weights| !weights.iter().sum::<f64>().is_finite()) {
            return refuse(option, "found weights whose sum is beyond what a float holds".to_owned());
        }
    }
    if weights.is_none() && !after.is_empty() {
        return refuse("after", "found places without `weights`, which apply up to there".to_owned());
    }
    if let Some(pair) = after.windows(2).find(|pair| pair[0] >= pair[1]) {
        return refuse("after", format!("found {} after {}, expected rising numbers", pair[1], pair[0]));
    }
    if after.len().checked_mul(each) != Some(then.len()) {
        let (found, times) = (then.len(), after.len());
        return refuse(
            "then",
            format!("found {found} weights, expected {each} for each of {times} numbers in `after`"),
        );
    }
    let Some(names) = names else { return Ok(()) };
    if tag.is_none() {
        return refuse("names", "found names without `tag`, the field for them".to_owned());
    }
    if let Some(twice) = repeated(names) {
        return refuse("names", format!("`{twice}` stands there twice"));
    }
    if weights.is_some() && names.len() != each {
        return refuse("names", format!("found {} names for the weights of {each} inputs", names.len()));
    }
    Ok(())
}

impl Stream for Mix {
    fn reset(&mut self, _: &Context) -> Result<()> {
        (self.drawn, self.failed) = (0, false);
        self.inputs.clear();
        self.shares = self.shares.take().map(|_| Shares::default());
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        if self.failed {
            return Ok(Step::End);
        }
        if let Err(error) = self.count(io.inputs()) {
            self.failed = true;
            return Err(error);
        }
        let rngs = cx.rngs();
        while io.room() > 0 {
            let Some(input) = self.draw(&rngs) else { return Ok(Step::End) };
            if io.input(input).is_some_and(|input| !input.is_empty()) {
                self.inputs[input].gave = true;
                self.drawn += 1;
                if let Some(shares) = &mut self.shares {
                    shares.given[input] += 1;
                }
                self.give(input, io, cx)?;
            } else if !io.ended(input) {
                return Ok(Step::NeedInput(input));
            } else if let Some(step) = self.exhaust(input) {
                return Ok(step);
            }
        }
        Ok(Step::Ready)
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        match self.stop {
            Stop::All => Length::sum(inputs),
            // Inputs that have none end it.
            Stop::Never => {
                Some(Length::sum(inputs).map_or(Length::ENDLESS, |all| all.times(Length::ENDLESS)))
            }
            // Draws say when.
            Stop::First | Stop::UntilAll => None,
        }
    }

    fn state(&self) -> Result<State> {
        let inputs = self.inputs.iter().map(|input| (input.pass, input.gave, input.exhausted, input.out));
        let shares = self.shares.clone().unwrap_or_default();
        let weights = shares.weights.into_iter().map(f64::to_bits);
        let position: Position = (self.drawn, inputs.collect(), weights.collect(), shares.given);
        State::json(2, &position)
    }

    /// Other weights apply from here on, and shares by them are of what comes.
    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let (drawn, inputs, weights, given): Position = state.parse(2)?;
        if weights.len() != given.len() {
            return Err(Error::invalid("found weights and shares of different inputs"));
        }
        let weights = weights.into_iter().map(f64::from_bits).collect();
        self.shares = self.shares.take().map(|_| Shares { weights, given });
        let inputs = inputs.into_iter();
        self.inputs =
            inputs.map(|(pass, gave, exhausted, out)| Input { pass, gave, exhausted, out }).collect();
        self.drawn = drawn;
        Ok(())
    }
}

impl Mix {
    /// Checks that what was given for each input is as many as there are.
    fn count(&mut self, inputs: usize) -> Result<()> {
        let of = |name, found: Option<usize>| match found {
            Some(found) if found != inputs => {
                Err(Error::invalid(format!("found {found} {name} for {inputs} inputs"))
                    .context("option", name))
            }
            _ => Ok(()),
        };
        of("weights", self.weights.as_ref().map(|weights| weights.len() / (self.after.len() + 1)))?;
        of("names", self.names.as_ref().map(Vec::len))?;
        if self.inputs.is_empty() {
            self.inputs.resize(inputs, Input::default());
        }
        if self.inputs.len() != inputs {
            let found = self.inputs.len();
            return Err(Error::invalid(format!(
                "found the state of a mix of {found} inputs, expected {inputs}"
            )));
        }
        Ok(())
    }

    /// The input that the next draw gives; `None` at the end. It gives the same until the draw is settled.
    fn draw(&mut self, rngs: &Rngs) -> Option<usize> {
        if self.stop == Stop::UntilAll && self.inputs.iter().all(|input| input.exhausted) {
            return None;
        }
        let inputs = &self.inputs;
        let left = || (0..inputs.len()).filter(|&input| !inputs[input].out);
        let weights = self.weights.as_deref().map(|weights| {
            let from = self.time() * inputs.len();
            &weights[from..from + inputs.len()]
        });
        let weight = |input: usize| weights.map_or(1.0, |weights| weights[input]);
        if let Some(shares) = &mut self.shares {
            shares.follow(inputs.len(), weight);
            return shares.due(left());
        }
        let mut point = rngs.of(self.drawn).f64() * left().map(weight).sum::<f64>();
        let drawn = left().find(|&input| {
            point -= weight(input);
            point < 0.0
        });
        drawn.or_else(|| left().next_back()) // Rounding may leave the point at the very end.
    }

    /// How many times the weights have changed.
    fn time(&self) -> usize {
        if self.after.is_empty() {
            return 0;
        }
        // An input that is out was drawn once without a sample.
        let out = self.inputs.iter().filter(|input| input.out).count() as u64;
        self.after.partition_point(|&after| after <= self.drawn.saturating_sub(out))
    }

    /// What follows when an input that was drawn has ended; `None` when others go on.
    fn exhaust(&mut self, drawn: usize) -> Option<Step> {
        let input = &mut self.inputs[drawn];
        if self.stop == Stop::First {
            return Some(Step::End);
        }
        input.exhausted = true;
        if self.stop == Stop::All || !input.gave {
            input.out = true;
            self.drawn += 1;
            if let Some(shares) = &mut self.shares {
                shares.given.fill(0);
            }
        } else if self.stop == Stop::Never || self.inputs.iter().any(|input| !input.exhausted) {
            let input = &mut self.inputs[drawn];
            (input.pass, input.gave) = (input.pass + 1, false);
            return Some(Step::Rewind(drawn));
        }
        None
    }

    /// Gives the foremost sample of an input.
    fn give(&mut self, from: usize, io: &mut Io, cx: &Context) -> Result<()> {
        let pass = self.inputs[from].pass;
        let Some(tag) = &self.tag else {
            io.forward_as(from, 1, |uid| cx.uid_of(uid, [from as u64, pass]));
            return Ok(());
        };
        io.pop_into(from, &mut self.sample);
        self.sample.set_uid(cx.uid_of(self.sample.uid(), [from as u64, pass]));
        let schema = self.sample.schema();
        let tagged = match &self.tagged {
            Some((plain, tagged)) if plain == schema => tagged,
            _ if schema.position(tag).is_some() => {
                let error = Error::invalid("the field for the tag is there already").context("field", tag);
                return Err(error.context("sample", self.sample.key()));
            }
            _ => {
                let tagged = Schema::new(schema.names().iter().chain([tag]).cloned());
                &self.tagged.insert((schema.clone(), tagged)).1
            }
        };
        let name: Value = match &self.names {
            Some(names) => names[from].as_str().into(),
            None => (from as i64).into(),
        };
        self.sample.reshape(tagged, |_, _, values| {
            values.push(name);
            Ok::<_, Error>(())
        })?;
        io.push(&mut self.sample);
        Ok(())
    }
}

impl Shares {
    /// Begins anew where the weights, one for each input, are others than they were.
    fn follow(&mut self, inputs: usize, weight: impl Fn(usize) -> f64) {
        if self.weights.len() != inputs || (0..inputs).any(|input| self.weights[input] != weight(input)) {
            self.weights = (0..inputs).map(weight).collect();
            self.given = vec![0; inputs];
        }
    }

    /// Of the inputs left, that whose next sample is due first, if none gets more than its share rounded up.
    ///
    /// Source: Balinski, Young, "The quota method of apportionment", 1975. What each has given is then its share, rounded down
    /// or up, at every moment.
    fn due(&self, left: impl Iterator<Item = usize> + Clone) -> Option<usize> {
        let whole: f64 = left.clone().map(|input| self.weights[input]).sum();
        let next = 1.0 + left.clone().map(|input| self.given[input] as f64).sum::<f64>();
        let mut due: Option<(f64, usize)> = None;
        for input in left.clone() {
            let (given, weight) = (self.given[input] as f64, self.weights[input]);
            let at = (given + 1.0) / weight;
            if given * whole < weight * next && due.is_none_or(|(first, _)| at < first) {
                due = Some((at, input));
            }
        }
        due.map(|(_, input)| input).or_else(|| left.clone().next())
    }
}

#[cfg(test)]
mod tests;
