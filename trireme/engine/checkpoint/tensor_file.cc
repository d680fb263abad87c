#include "trireme/engine/checkpoint/tensor_file.h"

#include <utility>

#include "trireme/engine/record/convert.h"

namespace trireme::checkpoint {

void TensorFile::add(std::string name, const at::Tensor& tensor) {
  const at::Tensor& dense = dense_.emplace_back(tensor.detach().contiguous());
  tensors_.push_back({std::move(name),
                      record::to_dtype(dense.scalar_type()),
                      dense.sizes().vec(),
                      {static_cast<const std::byte*>(dense.const_data_ptr()), dense.nbytes()}});
}

safetensors::Written TensorFile::write(const std::filesystem::path& path) {
  const std::vector<at::Tensor> kept = std::exchange(dense_, {});
  return safetensors::write(path, std::exchange(tensors_, {}));
}

at::Tensor rows_of(const at::Tensor& whole, std::int64_t begin, std::int64_t end) {
  return whole.dim() == 0 ? whole : whole.narrow(0, begin, end - begin);
}

}  // namespace trireme::checkpoint
