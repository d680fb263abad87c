#pragma once

#include <functional>
#include <map>
#include <string>

#include "benchmarks/kernels/tensors.h"

namespace trireme::judges {

using kernels::bench::Tensors;

/// Makes the outputs of a kernel or metric from its inputs and options.
using Operation = std::function<Tensors(const Tensors& inputs)>;
using Operations = std::map<std::string, Operation>;

// One function for each file here: what it adds is called by name from the Python file beside it.
void add_attention(Operations& operations);
void add_coco(Operations& operations);
void add_detection(Operations& operations);
void add_log_mel(Operations& operations);
void add_normalization(Operations& operations);
void add_objects(Operations& operations);
void add_optimizers(Operations& operations);
void add_ranking(Operations& operations);
void add_transducer(Operations& operations);
void add_volume(Operations& operations);
void add_word_error_rate(Operations& operations);

}  // namespace trireme::judges
