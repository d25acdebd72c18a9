//! `shuffle`: random order within a buffer.

use forebay_core::{Context, DataPipe, Io, PipeInfo, Result, Sample, Step, Stream, options};

options! {
    /// Options of `shuffle`.
    pub struct ShuffleOptions {
        /// Samples in the buffer; one keeps the order, as many as there are gives every order alike.
        size: usize = required, in 1..=1_000_000_000;
    }
}

/// Fills a buffer, then gives a random sample of it for each that comes in.
///
/// The draws depend on seed, epoch, pass, node and the number of the output, never on how many
/// samples wait or how much room there is.
#[derive(Debug)]
pub struct Shuffle {
    size: usize,
    /// The samples held come first; the rest keep their memory for the next ones.
    buffer: Vec<Sample>,
    held: usize,
    drawn: u64,
}

impl DataPipe for Shuffle {
    const INFO: PipeInfo =
        PipeInfo { name: "shuffle", summary: "Random order within a buffer", ..PipeInfo::DEFAULT };
    type Options = ShuffleOptions;

    fn new(options: ShuffleOptions) -> Result<Self> {
        Ok(Self { size: options.size, buffer: Vec::new(), held: 0, drawn: 0 })
    }
}

impl Shuffle {
    /// Takes samples until the buffer is full or none waits; says whether it is full.
    fn refill(&mut self, io: &mut Io) -> bool {
        while self.held < self.size {
            if self.held == self.buffer.len() {
                self.buffer.push(Sample::default());
            }
            if !io.pop_into(0, &mut self.buffer[self.held]) {
                return false;
            }
            self.held += 1;
        }
        true
    }
}

impl Stream for Shuffle {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.buffer.clear();
        self.held = 0;
        self.drawn = 0;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        while io.room() > 0 {
            if !self.refill(io) && !io.ended(0) {
                return Ok(Step::NeedInput(0));
            }
            if self.held == 0 {
                return Ok(Step::End);
            }
            let slot = cx.rng(self.drawn).below(self.held as u64) as usize;
            self.drawn += 1;
            self.held -= 1;
            io.push(&mut self.buffer[slot]);
            self.buffer.swap(slot, self.held);
        }
        Ok(Step::Ready)
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Options, random::Rng};

    use super::*;
    use crate::testing::{Drive, Host, check, ints, numbers};

    fn shuffle(size: usize) -> Shuffle {
        Shuffle::new(ShuffleOptions { size }).unwrap()
    }

    fn order(host: &Host, size: usize, count: usize) -> Vec<i64> {
        let input = numbers(count);
        let mut drive = Drive::with_host(shuffle(size), &input, 7, host);
        drive.run(5, usize::MAX).unwrap();
        ints(&drive.out, "value")
    }

    /// What the pipe is defined to give, written out plainly.
    fn reference(host: &Host, size: usize, mut input: Vec<i64>) -> Vec<i64> {
        let mut rest = input.split_off(size.min(input.len())).into_iter();
        let mut out = Vec::new();
        while !input.is_empty() {
            let slot = host.context().rng(out.len() as u64).below(input.len() as u64);
            out.push(input.swap_remove(slot as usize));
            input.extend(rest.next());
        }
        out
    }

    #[test]
    fn equals_the_definition_whatever_waits() {
        let mut rng = Rng::new(5, 0);
        for _ in 0..30 {
            let (count, size) = (rng.below(200) as usize, 1 + rng.below(60) as usize);
            let expected = reference(&Host::new(), size, (0..count as i64).collect());
            let out = check(|| shuffle(size), &numbers(count));
            assert_eq!(ints(&out, "value"), expected);
            assert!(out.iter().all(|sample| sample.uid() == sample.key().index), "samples stay whole");
        }
    }

    #[test]
    fn one_slot_keeps_the_order() {
        assert_eq!(order(&Host::new(), 1, 50), (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn no_slot_is_refused_b071() {
        assert!(ShuffleOptions::parse(r#"{"size": 0}"#).is_err());
        assert!(ShuffleOptions::parse(r#"{"size": -3}"#).is_err());
    }

    #[test]
    fn seed_epoch_and_pass_decide_b068() {
        let host = |seed, epoch, pass| {
            let mut host = Host::new();
            (host.raw.seed, host.raw.epoch, host.raw.pass) = (seed, epoch, pass);
            host
        };
        let base = order(&host(1, 0, 0), 10, 20);
        assert_eq!(base, order(&host(1, 0, 0), 10, 20));
        for other in [host(2, 0, 0), host(1, 1, 0), host(1, 0, 1)] {
            assert_ne!(base, order(&other, 10, 20));
        }
    }

    #[test]
    fn a_buffer_for_all_gives_every_order_alike() {
        let mut counts = std::collections::HashMap::new();
        let runs = 24_000;
        for epoch in 0..runs {
            let mut host = Host::new();
            host.raw.epoch = epoch;
            *counts.entry(order(&host, 4, 4)).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        let expected = runs as f64 / 24.0;
        let chi: f64 = counts.values().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        assert!(chi < 49.73, "chi-square with 23 degrees of freedom is {chi}, above the 99.9 % bound");
    }

    #[test]
    fn starts_over_after_a_reset() {
        let host = Host::new();
        let input = numbers(30);
        let mut drive = Drive::with_host(shuffle(8), &input, 7, &host);
        drive.run(5, 11).unwrap();
        let mut pipe = drive.into_pipe();
        pipe.reset(&host.context()).unwrap();
        let mut again = Drive::with_host(pipe, &input, 7, &host);
        again.run(5, usize::MAX).unwrap();
        assert_eq!(ints(&again.out, "value"), order(&host, 8, 30));
    }
}
