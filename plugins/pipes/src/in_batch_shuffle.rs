//! `in_batch_shuffle`: the rows of each batch in random order.
//!
//! ```toml
//! [in_batch_shuffle]
//! page = "order"
//! examples = ['forebay head -n 1 "range 1000 | batch 8 | in_batch_shuffle"']
//! cases = ["range N | batch 6 | in_batch_shuffle"]
//! ```

use forebay_core::{
    Context, DataPipe, Error, Map, NoOptions, PipeInfo, PipeOrder, Result, Sample, Tensor, TensorExt, Value,
    View,
};

use crate::unbatch::count_rows;

/// Gives the rows of each batch another order, the same in every field.
///
/// The draws are keyed by the batch's uid, which it keeps, as its key. Cost: each tensor is copied once.
#[derive(Debug)]
pub struct InBatchShuffle;

impl DataPipe for InBatchShuffle {
    const INFO: PipeInfo = PipeInfo {
        name: "in_batch_shuffle",
        summary: "The rows of each batch in random order",
        order: PipeOrder { shuffles: true, ..PipeOrder::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }
}

impl Map for InBatchShuffle {
    fn map(&self, sample: &mut Sample, cx: &Context) -> Result<()> {
        let mut order: Vec<usize> = (0..count_rows(sample)?).collect();
        let mut rng = cx.rng(sample.uid());
        for end in (1..order.len()).rev() {
            order.swap(end, rng.below(end as u64 + 1) as usize);
        }
        for value in sample.values_mut() {
            *value = reordered(value, &order, cx)?;
        }
        Ok(())
    }
}

/// The rows of a value, which has been seen to have them, in this order.
fn reordered(value: &Value, order: &[usize], cx: &Context) -> Result<Value> {
    Ok(match value.view() {
        View::Tensor(tensor) => {
            let each = tensor.data().len() / order.len().max(1);
            let mut bytes = cx.alloc(tensor.data().len())?;
            for (place, &from) in order.iter().enumerate() {
                let row = tensor.data().as_slice().get(from * each..(from + 1) * each);
                let row = row.ok_or_else(|| Error::bug("a tensor with fewer bytes than its shape says"))?;
                bytes[place * each..][..each].copy_from_slice(row);
            }
            let shape: Vec<_> = tensor.shape().iter().map(|&axis| axis as usize).collect();
            Tensor::new(tensor.dtype(), &shape, bytes.freeze())?.into()
        }
        View::List(items) => Value::list(order.iter().map(|&from| items[from].clone()).collect()),
        View::Struct(fields) => {
            let values = fields.values().iter().map(|value| reordered(value, order, cx));
            Value::with_schema(fields.schema().clone(), values.collect::<Result<_>>()?)
        }
        _ => value.clone(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use forebay_core::DType;

    use super::*;
    use crate::testing::{Host, ints, map, sample, small_host};

    fn batch(uid: u64, count: u8) -> Sample {
        let bytes: Vec<u8> = (0..count).flat_map(|at| [at, 100 + at]).collect();
        let pairs: Value = Tensor::new(DType::U8, &[count.into(), 2], bytes.into()).unwrap().into();
        let texts = Value::list((0..count).map(|at| at.to_string().into()).collect());
        let numbers: Vec<u8> = (0..count).flat_map(|at| i64::from(at).to_ne_bytes()).collect();
        let numbers: Value = Tensor::new(DType::I64, &[count.into()], numbers.into()).unwrap().into();
        let nested =
            Value::structure(vec![("n".into(), numbers.clone()), ("none".into(), Value::structure(vec![]))]);
        sample(uid, &[("pairs", pairs), ("texts", texts), ("numbers", numbers), ("nested", nested)])
    }

    fn shuffled(input: &Sample, host: &Host) -> Sample {
        map(&InBatchShuffle, input, host).unwrap()
    }

    #[test]
    fn every_field_has_the_same_order() {
        let host = small_host();
        let input = batch(7, 20);
        let out = shuffled(&input, &host);
        assert_eq!((out.uid(), out.key()), (input.uid(), input.key()));
        let order = ints(std::slice::from_ref(&out), "numbers");
        assert_ne!(order, (0..20).collect::<Vec<_>>());
        let pairs = out.get("pairs").and_then(Value::as_tensor).unwrap();
        assert_eq!(pairs.shape(), [20, 2]);
        assert_eq!(
            pairs.data()[..],
            order.iter().flat_map(|&at| [at as u8, 100 + at as u8]).collect::<Vec<_>>()[..]
        );
        assert_eq!(
            out.get("texts"),
            Some(&Value::list(order.iter().map(|at| at.to_string().into()).collect()))
        );
        let Some(View::Struct(nested)) = out.get("nested").map(Value::view) else { panic!("a struct") };
        assert_eq!(nested.get("n"), out.get("numbers"));
        assert_eq!(shuffled(&input, &host), out, "the same again");
        for other in [
            shuffled(&batch(8, 20), &host),
            shuffled(&input, &small_host().seed(3)),
            shuffled(&input, &small_host().epoch(1)),
        ] {
            assert_ne!(ints(&[other], "numbers"), order);
        }
        for count in [0, 1] {
            assert_eq!(shuffled(&batch(7, count), &host), batch(7, count));
        }
    }

    #[test]
    fn every_order_is_alike() {
        let host = small_host();
        let mut counts = HashMap::new();
        for uid in 0..24_000 {
            *counts.entry(ints(&[shuffled(&batch(uid, 4), &host)], "numbers")).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        let chi: f64 = counts.values().map(|&count| (f64::from(count) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi < 49.73, "chi-square with 23 degrees of freedom is {chi}, above the 99.9 % bound");
    }

    #[test]
    fn what_is_no_batch_is_refused() {
        let host = small_host();
        let error = map(&InBatchShuffle, &sample(1, &[("a", 1_i64.into())]), &host).unwrap_err();
        assert_eq!(error.get("field"), Some("a"));
        let mut uneven = batch(1, 3);
        uneven.set("more", Value::list(vec![1_i64.into()]));
        assert_eq!(map(&InBatchShuffle, &uneven, &host).unwrap_err().get("field"), Some("more"));
    }
}
