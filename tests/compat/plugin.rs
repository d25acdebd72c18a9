//! A plugin of every release, for the tests of what keeps loading: a source and a stream with a state, and a decoder whose values
//! lie in memory of the host, in memory of its own, and in both.
//!
//! What it gives stands in the tests and never changes.

use forebay_core::{
    Buffer, Context, DType, DataPipe, Decoder, DecoderInfo, Error, Io, Key, Length, NoOptions, PipeInfo, Drops, PipeAudit, Result,
    Sample, Source, State, StateExt, Step, Str, Stream, Tensor, TensorExt, Value, Wanted, options,
};

options! {
    /// Options of `ticks`.
    pub struct TicksOptions {
        /// How many samples there are.
        count: u64 = 20;
    }
}

/// Numbers, and bytes for the decoder.
pub struct Ticks {
    count: u64,
    next: u64,
}

impl DataPipe for Ticks {
    const INFO: PipeInfo = PipeInfo { name: "ticks", summary: "Numbers, and bytes", ..PipeInfo::DEFAULT };
    type Options = TicksOptions;

    fn new(options: TicksOptions) -> Result<Self> {
        Ok(Self { count: options.count, next: 0 })
    }
}

impl Source for Ticks {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.next = 0;
        Ok(())
    }

    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        let number = self.next;
        if number == self.count {
            return Ok(None);
        }
        self.next += 1;
        let length = u8::try_from(number % 7).unwrap_or(0);
        let bytes: Vec<u8> = [length, 0, 0, 0].into_iter().chain((0..length).map(|at| b'a' + at)).collect();
        let mut sample = Sample::new(number, Key { origin: "ticks".into(), index: number, ..Key::default() });
        sample.set("value", number.cast_signed());
        sample.set("it.counted", Buffer::from(bytes));
        Ok(Some(sample))
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.next)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.next = state.parse(1)?;
        Ok(())
    }

    fn len(&self) -> Option<u64> {
        Some(self.count)
    }
}

/// Adds the sum of all values so far.
pub struct Sums {
    sum: i64,
    sample: Sample,
}

impl DataPipe for Sums {
    const INFO: PipeInfo =
        PipeInfo { name: "sums", summary: "Adds the sum of all values so far", ..PipeInfo::DEFAULT };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self { sum: 0, sample: Sample::default() })
    }
}

impl Stream for Sums {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.sum = 0;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        while io.room() > 0 {
            if !io.input(0).is_some_and(|input| input.pop_into(&mut self.sample)) {
                return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
            }
            self.sum += self.sample.get("value").and_then(Value::as_i64).unwrap_or_default();
            self.sample.set("sum", self.sum);
            io.push(&mut self.sample);
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.sum)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.sum = state.parse(1)?;
        Ok(())
    }
}

/// Every other sample; says how many that makes, which plugins do since 1.1.
pub struct Evens {
    odd: bool,
    sample: Sample,
}

impl DataPipe for Evens {
    const INFO: PipeInfo =
        PipeInfo { name: "evens", summary: "Every other sample", audit: PipeAudit { drops: Drops::Always, ..PipeAudit::DEFAULT }, ..PipeInfo::DEFAULT };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self { odd: false, sample: Sample::default() })
    }
}

impl Stream for Evens {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.odd = false;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        while io.room() > 0 {
            if !io.pop_into(0, &mut self.sample) {
                return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
            }
            self.odd = !self.odd;
            if self.odd {
                io.push(&mut self.sample);
            }
        }
        Ok(Step::Ready)
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        Some(inputs[0]?.map(|count| count.div_ceil(2)))
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.odd)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.odd = state.parse(1)?;
        Ok(())
    }
}

/// Decodes a count in four bytes, and as many bytes.
pub struct Counted;

impl Decoder for Counted {
    const INFO: DecoderInfo = DecoderInfo {
        name: "counted",
        summary: "A count in four bytes, and as many bytes",
        extensions: &["counted"],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn decode(&self, bytes: &Buffer, _: &Wanted, cx: &Context) -> Result<Value> {
        let (count, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| Error::corrupt("no count"))?;
        let count = u32::from_le_bytes(*count) as usize;
        if rest.len() != count {
            let message = format!("found {} bytes, expected {count}", rest.len());
            return Err(Error::corrupt(message).context("byte", 4));
        }
        // The host's memory, this library's, and a part of what was given.
        let mut backwards = cx.alloc(count)?;
        backwards.iter_mut().zip(rest.iter().rev()).for_each(|(to, from)| *to = *from);
        let own: Vec<u8> = rest.iter().map(u8::to_ascii_uppercase).collect();
        let tensor = Tensor::new(DType::U8, &[count], own.into())?;
        let fields: [(Str, Value); 4] = [
            ("count".into(), Value::from(i64::try_from(count).unwrap_or(i64::MAX))),
            ("backwards".into(), backwards.freeze().into()),
            ("upper".into(), tensor.into()),
            ("parts".into(), Value::list(vec![format!("{count} bytes").into(), bytes.slice(4..).into()])),
        ];
        Ok(Value::structure(fields.into()))
    }
}

forebay_core::export_plugin! { sources: [Ticks], streams: [Sums, Evens], decoders: [Counted] }
