#include "trireme/session/initial_weights.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "trireme/base/mapped_file.h"
#include "trireme/base/safetensors.h"
#include "trireme/engine/record/deferred_init.h"
#include "trireme/engine/record/torch_terms.h"
#include "trireme/error.h"

namespace trireme::session {
namespace {

/// Tensors of a file by the name that they have in the model.
class Weights {
 public:
  explicit Weights(const InitialWeights& options)
      : options_(options),
        mapped_(std::make_shared<const MappedFile>(options.file)),
        content_(safetensors::parse(mapped_->bytes(), options.file)) {
    for (const safetensors::Tensor& tensor : content_.tensors) {
      const std::string name = renamed(tensor.name);
      if (left_.emplace(name, &tensor).second) continue;
      fail(fmt::format("two of its tensors become '{}'", name));
    }
  }

  void give(const NamedTensor& item) {
    const auto found = left_.find(item.name);
    if (found == left_.end()) return missing_.push_back(&item);
    const safetensors::Tensor& tensor = *found->second;
    if (tensor.shape != item.tensor.sizes().vec()) {
      return miss(item.name, fmt::format("has the shape [{}], that of the file [{}]",
                                         fmt::join(item.tensor.sizes().vec(), ", "),
                                         fmt::join(tensor.shape, ", ")));
    }
    const auto take = [file = mapped_, bytes = const_cast<std::byte*>(tensor.bytes.data()),
                       shape = tensor.shape, type = record::to_scalar_type(tensor.dtype),
                       target = item.tensor.detach()] {
      const at::NoGradGuard no_grad;
      target.copy_(at::from_blob(bytes, shape, at::TensorOptions().dtype(type)));  // only read
    };
    if (!record::DeferredInit::put_off(item.tensor, take)) take();
    taken_.insert(item.tensor.unsafeGetTensorImpl());
    ++num_taken_;
    left_.erase(found);
  }

  std::string finish() {
    for (const NamedTensor* item : missing_) {
      // Files have a tied tensor once, models under each of its names.
      if (!taken_.contains(item->tensor.unsafeGetTensorImpl())) {
        miss(item->name, "is not in the file");
      }
    }
    std::vector<std::string> left;
    for (const auto& [name, tensor] : left_) left.push_back(name);
    if (!left.empty() && !options_.partial) {
      fail(fmt::format("it has '{}', which is no tensor of the model", left.front()));
    }
    return fmt::format(
        "{} tensors from '{}'{}{}", num_taken_, options_.file,
        kept_.empty() ? "" : fmt::format("; as the model makes them: {}", named(kept_)),
        left.empty() ? "" : fmt::format("; not used: {}", named(left)));
  }

 private:
  static std::string named(const std::vector<std::string>& names) {
    constexpr std::size_t kMost = 8;
    const std::vector<std::string> first(names.begin(),
                                         names.begin() + std::min(names.size(), kMost));
    return fmt::format(
        "{}{}", fmt::join(first, ", "),
        names.size() > kMost ? fmt::format(" and {} more", names.size() - kMost) : "");
  }

  std::string renamed(const std::string& name) const {
    for (const auto& [from, to] : options_.renamed) {
      if (name.starts_with(from)) return to + name.substr(from.size());
    }
    return name;
  }

  void miss(const std::string& name, const std::string& problem) {
    if (!options_.partial) fail(fmt::format("'{}' {}", name, problem));
    kept_.push_back(name);
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(ErrorKind::kInvalidArgument,
                fmt::format("initial weights '{}': {}; to take what fits: --init-partial; to take "
                            "names that begin otherwise: --init-rename",
                            options_.file, problem));
  }

  const InitialWeights& options_;
  std::shared_ptr<const MappedFile> mapped_;
  safetensors::Content content_;
  std::map<std::string, const safetensors::Tensor*> left_;
  std::set<const at::TensorImpl*> taken_;
  std::vector<const NamedTensor*> missing_;
  int num_taken_ = 0;
  std::vector<std::string> kept_;
};

}  // namespace

std::string load_weights(const Model& model, const InitialWeights& options) {
  Weights weights(options);
  for (const auto* list : {&model.parameters, &model.buffers}) {
    for (const NamedTensor& item : *list) {
      if (item.tensor.defined()) weights.give(item);
    }
  }
  return weights.finish();
}

MakeWorkload with_weights(const MakeWorkload& make, const InitialWeights& options,
                          const std::function<void(const std::string&)>& say) {
  if (options.file.empty()) return make;
  const auto is_said = std::make_shared<bool>(false);
  return [make, options, say, is_said] {
    Workload workload = make();
    const std::string text = load_weights(workload.model, options);
    if (say && !*is_said) say(text);
    *is_said = true;
    return workload;
  };
}

}  // namespace trireme::session
