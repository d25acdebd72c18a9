//! `shard`: each rank its share of the samples.
//!
//! ```toml
//! [shard]
//! page = "order"
//! examples = ['forebay run "range 1000 | shard drop_last=true | batch 50" --rank 1/4']
//! cases = ["range N | shard drop_last=true"]
//! ```

use forebay_core::{
    Context, DataPipe, Drops, Error, Io, Length, PipeAudit, PipeInfo, PipeOrder, Result, Sample, State,
    StateExt, Step, Stream, options,
};

options! {
    /// Options of `shard`.
    pub struct ShardOptions {
        /// Leave out the last round if it lacks a sample for some rank, so that all ranks get equally many.
        drop_last: bool = false;
    }
}

/// Gives every world-size-th sample, from number rank on.
///
/// The input is dealt out in rounds of one sample for each rank. A saved position says with which
/// sample the next round begins, counted over all ranks, so ranks of another number can go on from
/// it: sample `round + j` then goes to rank `j` modulo the new world size. That is exact when every
/// rank was saved after the same number of its own samples, and then every rank's position serves
/// for all.
#[derive(Debug)]
pub struct Shard {
    drop_last: bool,
    /// The sample of the input that begins this round, counted from 0.
    round: u64,
    /// The next sample that comes from the input.
    at: u64,
    /// With `drop_last`: this rank's sample, which waits until each rank has one.
    sample: Sample,
    held: bool,
}

impl DataPipe for Shard {
    const INFO: PipeInfo = PipeInfo {
        name: "shard",
        summary: "Each rank its share of the samples",
        also: &["sharding_filter", "distributed_sharding"],
        order: PipeOrder { shards: true, ..PipeOrder::DEFAULT },
        audit: PipeAudit { drops: Drops::With(&["drop_last"]), ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = ShardOptions;

    fn new(options: ShardOptions) -> Result<Self> {
        Ok(Self { drop_last: options.drop_last, round: 0, at: 0, sample: Sample::default(), held: false })
    }
}

impl Stream for Shard {
    fn reset(&mut self, _: &Context) -> Result<()> {
        (self.round, self.at, self.held) = (0, 0, false);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        let (rank, world) = (u64::from(cx.rank()), u64::from(cx.world_size()));
        if rank >= world {
            return Err(Error::invalid(format!(
                "found rank {rank} in a world of {world}, expected one below"
            )));
        }
        while io.room() > 0 {
            if !self.find(io, rank, world) {
                return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
            }
            io.push(&mut self.sample);
            self.held = false;
            self.round += world;
        }
        Ok(Step::Ready)
    }

    fn length(&self, inputs: &[Option<Length>], cx: &Context) -> Option<Length> {
        let (rank, world) = (u64::from(cx.rank()), u64::from(cx.world_size()));
        let share = |count: u64| match self.drop_last {
            true => count / world,
            false => count.saturating_sub(rank).div_ceil(world),
        };
        Some(inputs[0]?.map(share))
    }

    /// The round and where the input goes on: never after the round's begin, whose samples another rank may want.
    fn state(&self) -> Result<State> {
        let from = self.at.min(self.round);
        Ok(State::json(1, &(self.round, from))?.again(0, self.at - from))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let (round, from): (u64, u64) = state.parse(1)?;
        if from > round {
            return Err(Error::invalid(format!("found a round at {round} with an input at {from}")));
        }
        (self.round, self.at, self.held) = (round, from, false);
        Ok(())
    }
}

impl Shard {
    /// Takes what waits, until this rank's sample is there to be given; says whether it is.
    fn find(&mut self, io: &mut Io, rank: u64, world: u64) -> bool {
        if !self.held {
            if !self.pass_over(io, self.round + rank) || !io.pop_into(0, &mut self.sample) {
                return false;
            }
            self.at += 1;
            self.held = true;
        }
        !self.drop_last || self.pass_over(io, self.round + world)
    }

    /// Leaves out samples up to this one; says whether it is the next.
    fn pass_over(&mut self, io: &mut Io, until: u64) -> bool {
        let Some(input) = io.input(0) else { return false };
        while self.at < until && !input.is_empty() {
            input.advance();
            self.at += 1;
        }
        self.at == until
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::random::Rng;

    use super::*;
    use crate::testing::{Drive, Host, check, check_resume, ints, numbers, small_host};

    fn shard(drop_last: bool) -> Shard {
        Shard::new(ShardOptions { drop_last }).unwrap()
    }

    fn host(rank: usize, world: usize) -> Host {
        small_host().rank(rank as u32, world as u32)
    }

    fn drive(drop_last: bool, input: &[Sample], rank: usize, world: usize) -> Drive<'_, Shard> {
        Drive::with_host(shard(drop_last), input, 5, &host(rank, world))
    }

    /// What each rank gets.
    fn shares(drop_last: bool, count: usize, world: usize) -> Vec<Vec<i64>> {
        let input = numbers(count);
        let share = |rank| {
            let mut drive = drive(drop_last, &input, rank, world);
            drive.run(3, usize::MAX).unwrap();
            ints(drive.out(), "value")
        };
        (0..world).map(share).collect()
    }

    /// Deals the shares back into one stream.
    fn dealt(shares: &[Vec<i64>]) -> Vec<i64> {
        let rounds = shares.iter().map(Vec::len).max().unwrap_or(0);
        (0..rounds)
            .flat_map(|round| shares.iter().filter_map(move |share| share.get(round).copied()))
            .collect()
    }

    #[test]
    fn every_sample_goes_to_one_rank_b110() {
        for world in 1..=64 {
            for count in [0, 1, world - 1, world, 100] {
                let shares = shares(false, count, world);
                assert_eq!(dealt(&shares), (0..count as i64).collect::<Vec<_>>(), "{count} over {world}");
                assert!(
                    shares
                        .iter()
                        .all(|share| share.len() == count / world || share.len() == count.div_ceil(world))
                );
            }
        }
    }

    #[test]
    fn all_ranks_get_equally_many_if_the_last_round_is_left_out_b111() {
        let lengths = |drop_last| shares(drop_last, 100, 3).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(true), [33, 33, 33]);
        assert_eq!(lengths(false), [34, 33, 33]);
        for world in [1, 2, 7, 64] {
            for count in [0, 1, world - 1, world, 100] {
                let whole = count / world * world;
                assert_eq!(dealt(&shares(true, count, world)), (0..whole as i64).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn alone_it_changes_nothing_and_it_goes_on_from_every_moment() {
        for drop_last in [false, true] {
            assert_eq!(check(|| shard(drop_last), &numbers(10)), numbers(10));
            check_resume(|| shard(drop_last), &numbers(7));
            let input = numbers(11);
            for rank in 0..4 {
                let whole = ints(
                    &{
                        let mut all = drive(drop_last, &input, rank, 4);
                        all.run(9, 99).unwrap();
                        all.out().to_vec()
                    },
                    "value",
                );
                let mut first = drive(drop_last, &input, rank, 4);
                loop {
                    let mut second = first.resume(shard(drop_last));
                    let _ = second.step(1);
                    let mut third = second.resume(shard(drop_last));
                    third.run(2, 99).unwrap();
                    let found = [first.out(), second.out(), third.out()].concat();
                    assert_eq!(ints(&found, "value"), whole);
                    if first.step(1).unwrap() == Step::End {
                        break;
                    }
                }
            }
        }
    }

    /// Saves each of `from` ranks after `rounds` rounds, and goes on with `to` ranks from each of the positions.
    fn changes_world(drop_last: bool, count: usize, (from, rounds, to): (usize, usize, usize)) {
        let input = numbers(count);
        for old in 0..from {
            let mut saved = drive(drop_last, &input, old, from);
            saved.run(1, rounds).unwrap();
            assert_eq!(saved.out().len(), rounds);
            let rest = |rank| {
                let mut drive = saved.resume_on(shard(drop_last), &host(rank, to));
                drive.run(2, usize::MAX).unwrap();
                ints(drive.out(), "value")
            };
            let rest: Vec<_> = (0..to).map(rest).collect();
            let start = rounds * from;
            let end = if drop_last { start + (count - start) / to * to } else { count };
            let expected: Vec<_> = (start as i64..end as i64).collect();
            assert_eq!(dealt(&rest), expected, "{count} from rank {old} of {from} after {rounds} to {to}");
        }
    }

    #[test]
    fn another_number_of_ranks_goes_on_from_a_round() {
        for drop_last in [false, true] {
            for (from, to) in (1..6).flat_map(|from| (1..6).map(move |to| (from, to))) {
                for rounds in 0..=20 / from {
                    changes_world(drop_last, 20, (from, rounds, to));
                }
            }
        }
        let mut rng = Rng::new(7, 0);
        for _ in 0..40 {
            let mut below = |bound: usize| rng.below(bound as u64) as usize;
            let (from, to, count) = (1 + below(64), 1 + below(64), below(300));
            let rounds = below(count / from + 1);
            changes_world(below(2) == 1, count, (from, rounds, to));
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let input = numbers(3);
        assert!(drive(false, &input, 2, 2).step(1).is_err());
        let host = small_host();
        let state = State::json(1, &(3_u64, 4_u64)).unwrap();
        assert!(shard(false).restore(&state, &host.context()).is_err());
    }
}
