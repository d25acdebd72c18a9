//! `Rows`: samples on their way into one, and `Cut`: every so many consecutive ones.

use std::fmt::Debug;

use forebay_core::{
    Chunk, Context, DType, Error, Io, Key, Result, Sample, Schema, State, StateExt, Step, Str, Tensor,
    TensorExt, Value,
};

use crate::plumbing::stack::Place;

/// How the values of a field become one.
pub(crate) trait Join: Debug + Send + 'static {
    /// The values of one field, so far.
    type Column: Debug + Send;

    /// Looks at the fields of the samples to come.
    ///
    /// # Errors
    /// `Invalid` when one lacks that is needed.
    fn begin(&self, _: &Schema) -> Result<()> {
        Ok(())
    }

    /// A column without values for this field.
    fn column(&self, name: &str) -> Self::Column;

    /// Adds the value number `row`, moving it out of its place.
    ///
    /// # Errors
    /// `Invalid` when it does not go with those before it; `Limit`.
    fn push(
        &self,
        column: &mut Self::Column,
        name: &str,
        value: &mut Value,
        row: usize,
        place: &Place,
    ) -> Result<()>;

    /// Forgets all values from number `rows` on.
    fn truncate(&self, column: &mut Self::Column, rows: usize);

    /// The one value of the first `rows` values; what comes with it, under other names, goes to `more`.
    ///
    /// # Errors
    /// `Limit`.
    fn finish(
        &self,
        column: Self::Column,
        name: &Str,
        rows: usize,
        more: &mut Vec<(String, Value)>,
        cx: &Context,
    ) -> Result<Value>;
}

/// The samples of a batch that is not finished.
#[derive(Debug)]
pub(crate) struct Rows<J: Join> {
    join: J,
    count: usize,
    uid: u64,
    key: Key,
    schema: Schema,
    columns: Vec<J::Column>,
    /// The field for the uids, if they are wanted, and those so far.
    field: Option<Str>,
    uids: Vec<u64>,
    /// The schema of the last sample, and where it has the field of each column.
    last: Schema,
    order: Vec<usize>,
}

impl<J: Join> Rows<J> {
    pub(crate) fn new(join: J, uids: Option<&str>) -> Self {
        Self {
            join,
            count: 0,
            uid: 0,
            key: Key::default(),
            schema: Schema::empty(),
            columns: Vec::new(),
            field: uids.map(Str::from),
            uids: Vec::new(),
            last: Schema::empty(),
            order: Vec::new(),
        }
    }

    /// How many there are.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Forgets all samples.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.columns.clear();
        self.uids.clear();
    }

    /// Takes the foremost sample. One that does not fit is left out.
    ///
    /// # Errors
    /// Those of the sample, which they name.
    #[inline]
    pub(crate) fn take(&mut self, input: &mut Chunk, place: &Place) -> Result<()> {
        let taken = input.pop_with(|uid, key, schema, values| self.put(uid, key, schema, values, place));
        taken.unwrap_or(Ok(()))
    }

    /// Moves the values of a sample in. One that does not fit is left out.
    ///
    /// # Errors
    /// Those of the sample, which they name.
    #[inline]
    pub(crate) fn put(
        &mut self,
        uid: u64,
        key: &Key,
        schema: &Schema,
        values: &mut [Value],
        place: &Place,
    ) -> Result<()> {
        if self.count == 0 {
            (self.uid, self.key) = (uid, key.clone());
        }
        if let Err(error) = self.add(schema, values, place) {
            return Err(self.leave_out(key, error));
        }
        if self.field.is_some() {
            self.uids.push(uid);
        }
        self.count += 1;
        Ok(())
    }

    #[cold]
    fn leave_out(&mut self, key: &Key, error: Error) -> Error {
        self.columns.iter_mut().for_each(|column| self.join.truncate(column, self.count));
        let error = error.context("sample", key);
        if self.count > 0 { error.context("first of batch", &self.key) } else { error }
    }

    #[inline]
    fn add(&mut self, schema: &Schema, values: &mut [Value], place: &Place) -> Result<()> {
        if self.count == 0 {
            self.start(schema)?;
        }
        if !schema.is(&self.last) {
            self.order = order(&self.schema, schema)?;
            self.last = schema.clone();
        }
        let fields = self.columns.iter_mut().zip(self.schema.names());
        for ((column, name), &at) in fields.zip(&self.order) {
            self.join
                .push(column, name, &mut values[at], self.count, place)
                .map_err(|error| error.context("field", name))?;
        }
        Ok(())
    }

    /// Starts a batch whose first sample has these fields.
    fn start(&mut self, schema: &Schema) -> Result<()> {
        self.columns.clear();
        if self.order.is_empty() || !schema.is(&self.schema) {
            self.join.begin(schema)?;
            self.schema = schema.clone();
        }
        self.last = self.schema.clone();
        self.order.clear();
        self.order.extend(0..self.schema.len());
        if let Some(field) = self.field.as_ref().filter(|field| self.schema.position(field).is_some()) {
            return Err(Error::invalid("the field for the uids is there already").context("field", field));
        }
        let Self { join, schema, columns, .. } = self;
        columns.extend(schema.names().iter().map(|name| join.column(name)));
        Ok(())
    }

    /// The batch; the next one starts empty, also after an error.
    ///
    /// # Errors
    /// `Limit`; `Invalid` when a field that comes with another is there already.
    pub(crate) fn finish(&mut self, cx: &Context) -> Result<Sample> {
        let count = std::mem::take(&mut self.count);
        let (mut values, mut more) = (Vec::with_capacity(self.columns.len()), Vec::new());
        let uids: Vec<u8> = self.uids.drain(..).flat_map(u64::to_ne_bytes).collect();
        for (column, name) in self.columns.drain(..).zip(self.schema.names()) {
            let value = self.join.finish(column, name, count, &mut more, cx);
            values.push(value.map_err(|error| error.context("field", name))?);
        }
        let key = self.key.take();
        let mut batch = Sample::with_schema(self.uid, key, self.schema.clone(), values);
        for (name, value) in more {
            if batch.get(&name).is_some() {
                let error = Error::invalid("a field of this name is there already");
                return Err(error.context("field", name).context("first of batch", batch.key()));
            }
            batch.set(&name, value);
        }
        if let Some(field) = &self.field {
            batch.set(field, Tensor::new(DType::U64, &[count], uids.into())?);
        }
        Ok(batch)
    }

    /// The columns of the unfinished batch.
    pub(crate) fn columns_mut(&mut self) -> &mut [J::Column] {
        &mut self.columns
    }
}

/// Every so many consecutive samples joined into one: what all pipes that batch by number do.
#[derive(Debug)]
pub(crate) struct Cut<J: Join> {
    size: usize,
    drop_last: bool,
    rows: Rows<J>,
    /// How many samples were taken for the unfinished batch: those in it, and those between them that did not fit.
    taken: u64,
    /// Up to which of those it told of the ones that do not fit, at times before a restore.
    told: u64,
}

impl<J: Join> Cut<J> {
    pub(crate) fn new(join: J, size: usize, drop_last: bool, uids: Option<&str>) -> Self {
        Self { size, drop_last, rows: Rows::new(join, uids), taken: 0, told: 0 }
    }

    /// How many batches so many samples make.
    pub(crate) fn length(&self, count: u64) -> u64 {
        let size = self.size as u64;
        if self.drop_last { count / size } else { count.div_ceil(size) }
    }

    pub(crate) fn reset(&mut self) {
        self.rows.clear();
        (self.taken, self.told) = (0, 0);
    }

    pub(crate) fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        let place = Place { capacity: self.size, strict: true, cx };
        while io.room() > 0 {
            if let Some(input) = io.input(0) {
                self.gather(input, &place)?;
            }
            if self.rows.count() == self.size {
                io.push(&mut self.finish(cx)?);
            } else if io.ended(0) {
                if self.rows.count() > 0 && !self.drop_last {
                    io.push(&mut self.finish(cx)?);
                }
                self.reset();
                return Ok(Step::End);
            } else {
                return Ok(Step::NeedInput(0));
            }
        }
        Ok(Step::Ready)
    }

    /// Takes samples until the batch is full or none waits.
    fn gather(&mut self, input: &mut Chunk, place: &Place) -> Result<()> {
        while self.rows.count() < self.size && !input.is_empty() {
            let Err(error) = self.rows.take(input, place) else {
                self.taken += 1;
                continue;
            };
            let begun = self.rows.count() > 0;
            self.taken = if begun { self.taken + 1 } else { 0 };
            if !begun || self.taken > self.told {
                self.told = self.taken;
                return Err(error);
            }
        }
        Ok(())
    }

    fn finish(&mut self, cx: &Context) -> Result<Sample> {
        (self.taken, self.told) = (0, 0);
        self.rows.finish(cx)
    }

    /// The samples of the unfinished batch come again; saved is only up to which of them it told of those that do not fit.
    pub(crate) fn state(&self) -> Result<State> {
        let state = if self.told > 0 { State::json(1, &self.told)? } else { State::default() };
        Ok(state.again(0, self.taken))
    }

    pub(crate) fn restore(&mut self, state: &State) -> Result<()> {
        self.told = if state.bytes.is_empty() { 0 } else { state.parse(1)? };
        Ok(())
    }
}

/// The `Stream` of a pipe whose field `cut` does all.
macro_rules! stream_of_cut {
    ($pipe:ty) => {
        impl forebay_core::Stream for $pipe {
            fn reset(&mut self, _: &Context) -> Result<()> {
                self.cut.reset();
                Ok(())
            }

            fn poll(&mut self, io: &mut forebay_core::Io, cx: &Context) -> Result<forebay_core::Step> {
                self.cut.poll(io, cx)
            }

            fn length(
                &self,
                inputs: &[Option<forebay_core::Length>],
                _: &Context,
            ) -> Option<forebay_core::Length> {
                Some(inputs[0]?.map(|count| self.cut.length(count)))
            }

            fn state(&self) -> Result<forebay_core::State> {
                self.cut.state()
            }

            fn restore(&mut self, state: &forebay_core::State, _: &Context) -> Result<()> {
                self.cut.restore(state)
            }
        }
    };
}
pub(crate) use stream_of_cut;

/// Where `other` has each field of `schema`.
pub(crate) fn order(schema: &Schema, other: &Schema) -> Result<Vec<usize>> {
    let order: Vec<_> = schema.names().iter().map_while(|name| other.position(name)).collect();
    if order.len() == schema.len() && order.len() == other.len() {
        return Ok(order);
    }
    let lacks = |one: &Schema, other: &Schema| {
        let names = one.names().iter().filter(|name| other.position(name).is_none());
        names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    let (missing, surplus) = (lacks(schema, other), lacks(other, schema));
    let message = match (missing.as_str(), surplus.as_str()) {
        ("", surplus) => format!("has {surplus} beside the fields before"),
        (missing, "") => format!("lacks {missing}, which was there before"),
        (missing, surplus) => format!("lacks {missing}, which was there before, and has {surplus} beside"),
    };
    Err(Error::invalid(format!("cannot stack: a sample {message}")))
}
