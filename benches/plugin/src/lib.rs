//! Maps of a known cost, and a decoder that costs nothing, for the benches.

use std::{thread, time::Duration};

use forebay_core::{
    Buffer, Context, DType, DataPipe, Decoder, DecoderInfo, Map, NoOptions, PipeInfo, Result, Sample, Tensor,
    TensorExt, Value, Wanted, options,
};

options! {
    /// Options of `bench_wait`.
    pub struct BenchWaitOptions {
        /// How long each sample waits, without CPU: the stand-in for a read from afar.
        micros: u64 = 500, in 0..=10000000;
        /// How many times as long every eighth sample waits.
        skew: u64 = 1, in 1..=1000;
    }
}

/// Lets each sample wait.
#[derive(Debug)]
pub struct BenchWait {
    usual: Duration,
    eighth: Duration,
}

impl DataPipe for BenchWait {
    const INFO: PipeInfo =
        PipeInfo { name: "bench_wait", summary: "Lets each sample wait", ..PipeInfo::DEFAULT };
    type Options = BenchWaitOptions;

    fn new(options: BenchWaitOptions) -> Result<Self> {
        let usual = Duration::from_micros(options.micros);
        Ok(Self { usual, eighth: Duration::from_micros(options.micros * options.skew) })
    }
}

impl Map for BenchWait {
    fn map(&self, sample: &mut Sample, _: &Context) -> Result<()> {
        thread::sleep(if sample.uid().is_multiple_of(8) { self.eighth } else { self.usual });
        Ok(())
    }
}

options! {
    /// Options of `bench_fill`.
    pub struct BenchFillOptions {
        /// The tensor's length.
        bytes: u64 = 600000, in 0..=1000000000;
    }
}

/// Gives each sample a tensor of bytes, all written anew, in the field `tensor`.
#[derive(Debug)]
pub struct BenchFill {
    bytes: usize,
}

impl DataPipe for BenchFill {
    const INFO: PipeInfo =
        PipeInfo { name: "bench_fill", summary: "Gives each sample a tensor", ..PipeInfo::DEFAULT };
    type Options = BenchFillOptions;

    fn new(options: BenchFillOptions) -> Result<Self> {
        Ok(Self { bytes: usize::try_from(options.bytes).unwrap_or(usize::MAX) })
    }
}

impl Map for BenchFill {
    fn map(&self, sample: &mut Sample, cx: &Context) -> Result<()> {
        let mut memory = cx.alloc(self.bytes)?;
        memory.fill(sample.uid().to_le_bytes()[0]);
        sample.set("tensor", Tensor::new(DType::U8, &[self.bytes], memory.freeze())?);
        Ok(())
    }
}

/// Gives each sample a sequence in the field `tokens`, an i32 tensor, whose length's logarithm is normal: 464 on average, 2,048 at most.
#[derive(Debug)]
pub struct BenchSequence;

impl DataPipe for BenchSequence {
    const INFO: PipeInfo =
        PipeInfo { name: "bench_sequence", summary: "Gives each sample a sequence", ..PipeInfo::DEFAULT };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }
}

impl Map for BenchSequence {
    fn map(&self, sample: &mut Sample, cx: &Context) -> Result<()> {
        let mut rng = cx.rng(sample.uid());
        // Twelve of them summed up are nearly normal.
        let normal = (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
        let length = ((6.0 + normal).exp() as usize).clamp(1, 2048);
        let mut memory = cx.alloc(4 * length)?;
        memory.fill(0);
        sample.set("tokens", Tensor::new(DType::I32, &[length], memory.freeze())?);
        Ok(())
    }
}

/// Gives the length of its bytes: what is left of a call is the call.
#[derive(Debug)]
pub struct BenchLength;

impl Decoder for BenchLength {
    const INFO: DecoderInfo =
        DecoderInfo { name: "bench_length", summary: "The length of the bytes", ..DecoderInfo::DEFAULT };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn decode(&self, bytes: &Buffer, _: &Wanted, _: &Context) -> Result<Value> {
        Ok((bytes.len() as u64).into())
    }
}

forebay_core::export_plugin! {
    maps: [BenchFill, BenchSequence, BenchWait],
    decoders: [BenchLength],
}
