#include "python/core/feed.h"

#include <pybind11/stl.h>

#include "trireme/error.h"
#include "trireme/model.h"

namespace trireme::python {

Feed::Feed(const NamedTensors& first, int replicas, int replica, bool any_size)
    : replicas_(replicas), replica_(replica), any_size_(any_size), rows_(tensor_source(first)) {
  fields_ = rows_->fields();
  rows_of_first_ = rows_->num_samples();
}

std::int64_t Feed::num_samples() const {
  if (!any_size_) return rows_of_first_ * replicas_;
  const std::lock_guard lock(mutex_);
  return rows_->num_samples() * replicas_;
}

/// Replicas have as many rows each.
void Feed::read(data::Sample sample, std::span<const std::span<std::byte>> places) const {
  const Rows rows = rows_of(sample.visit);
  const std::int64_t num_rows = rows->num_samples();
  const std::int64_t row = sample.index % (any_size_ ? num_rows : rows_of_first_);
  rows->read({row % num_rows, 0}, places);  // of recordings, where a later step has fewer
}

bool Feed::has(data::Sample sample) const {
  return any_size_ || sample.index % rows_of_first_ < rows_of(sample.visit)->num_samples();
}

Feed::Rows Feed::rows_of(std::int64_t step) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_closed_ || step <= step_ || step == 0; });
  if (is_closed_) throw Error(ErrorKind::kCancelled, "the training loop has ended");
  return rows_;
}

void Feed::push(std::int64_t step, const NamedTensors& rows) {
  const Rows next = tensor_source(rows);
  const std::int64_t num_rows = next->num_samples();
  if (!any_size_ && (num_rows == 0 || num_rows > rows_of_first_)) {
    throw Error(ErrorKind::kInvalidArgument, "the batch has " + std::to_string(num_rows) +
                                                 " samples, that of the first step had " +
                                                 std::to_string(rows_of_first_) +
                                                 "; a later one has from 1 to as many");
  }
  if (next->fields() != fields_) {
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      if (f < next->fields().size() && next->fields()[f] == fields_[f]) continue;
      throw Error(
          ErrorKind::kInvalidArgument,
          "'" + fields_[f].name +
              "' has another shape or dtype than in the first step, which was recorded; pad it "
              "to one size");
    }
  }
  const std::lock_guard lock(mutex_);
  rows_ = next;
  step_ = step;
  changed_.notify_all();
}

void Feed::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  changed_.notify_all();
}

void bind_feed(py::module_& module) {
  py::class_<Feed, data::Source, std::shared_ptr<Feed>>(module, "Feed")
      .def(py::init<const Feed::NamedTensors&, int, int, bool>(), py::arg("first"),
           py::arg("replicas"), py::arg("replica"), py::arg("any_size") = false)
      .def("push", &Feed::push, py::arg("step"), py::arg("rows"), Unlocked())
      .def("close", &Feed::close);
}

}  // namespace trireme::python
