//! Tensors of others, by DLPack: torch's, JAX's and whoever else has it.
#![expect(unsafe_code, reason = "capsules are C's")]

use forebay_core::{Context, DType, Value};
use pyo3::{exceptions::PyValueError, ffi, prelude::*, types::PyDict};

use crate::{
    array::{CPU, DlTensor, Legacy},
    convert,
};

/// The device of memory that a device can read too, which the processor reads as its own.
const PINNED: i32 = 3;

/// A copy of what `given` shows by DLPack, row by row.
pub(crate) fn tensor(given: &Bound<'_, PyAny>, cx: &Context) -> PyResult<Value> {
    let py = given.py();
    let device: (i32, i32) = given.call_method0("__dlpack_device__")?.extract()?;
    if device.0 != CPU && device.0 != PINNED {
        let name =
            given.getattr("device").map_or_else(|_| format!("{device:?}"), |device| device.to_string());
        return Err(PyValueError::new_err(format!(
            "found an array on the device {name}, expected the processor's: bring it there first"
        )));
    }
    // Torch refuses to show what a gradient is taken of.
    let shown = match given.getattr("detach") {
        Ok(detach) => detach.call0()?,
        Err(_) => given.clone(),
    };
    let capsule = shown.call_method("__dlpack__", (), Some(&PyDict::new(py)))?;
    // SAFETY: a capsule of this name holds such a tensor, which lives until the capsule is dropped, since nobody takes it.
    let found = unsafe {
        let place = ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"dltensor".as_ptr());
        if place.is_null() {
            return Err(PyErr::fetch(py));
        }
        &(*place.cast::<Legacy>()).tensor
    };
    // SAFETY: the maker's promise, as above.
    unsafe { copied(py, found, cx) }
}

/// # Safety
/// `found` describes memory that can be read.
unsafe fn copied(py: Python<'_>, found: &DlTensor, cx: &Context) -> PyResult<Value> {
    let DType { bits, lanes, .. } = found.dtype;
    if lanes != 1 || !bits.is_multiple_of(8) || !(8..=128).contains(&bits) {
        return Err(PyValueError::new_err(format!(
            "found an array of {}, expected elements of whole bytes",
            found.dtype
        )));
    }
    let size = usize::from(bits) / 8;
    let axes = usize::try_from(found.ndim).unwrap_or(0);
    let (shape, steps): (Vec<usize>, Vec<isize>) = if axes == 0 {
        (Vec::new(), Vec::new())
    } else {
        // SAFETY: both have a number for each axis; there may be no strides.
        unsafe {
            let shape = std::slice::from_raw_parts(found.shape, axes);
            let shape: Vec<usize> = shape.iter().map(|&len| usize::try_from(len).unwrap_or(0)).collect();
            let steps = if found.strides.is_null() {
                row_major(&shape)
            } else {
                std::slice::from_raw_parts(found.strides, axes).iter().map(|&step| step as isize).collect()
            };
            (shape, steps)
        }
    };
    let steps: Vec<isize> = steps.iter().map(|step| step * size as isize).collect();
    let base = found.data.cast::<u8>().cast_const().wrapping_add(found.byte_offset as usize);
    convert::tensor(py, cx, found.dtype, &shape, |memory| {
        let contiguous = row_major(&shape).iter().map(|step| step * size as isize).eq(steps.iter().copied());
        if memory.is_empty() {
        } else if contiguous {
            // SAFETY: so many bytes lie side by side there.
            memory.copy_from_slice(unsafe { std::slice::from_raw_parts(base, memory.len()) });
        } else {
            // SAFETY: the places that shape and steps name can be read.
            unsafe { gather(memory, base, &shape, &steps, size) };
        }
    })
}

fn row_major(shape: &[usize]) -> Vec<isize> {
    let mut steps = vec![1_isize; shape.len()];
    for at in (1..shape.len()).rev() {
        steps[at - 1] = steps[at] * shape[at] as isize;
    }
    steps
}

/// # Safety
/// Every place that shape and steps name from `base` on can be read.
unsafe fn gather(memory: &mut [u8], base: *const u8, shape: &[usize], steps: &[isize], size: usize) {
    let mut index = vec![0_usize; shape.len()];
    for element in memory.chunks_exact_mut(size) {
        let offset: isize = index.iter().zip(steps).map(|(&at, step)| at as isize * step).sum();
        // SAFETY: the caller's promise.
        element.copy_from_slice(unsafe { std::slice::from_raw_parts(base.offset(offset), size) });
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}
