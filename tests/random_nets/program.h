#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "trireme/model.h"

namespace trireme::random_nets {

inline constexpr std::int64_t kWidth = 6;

/// What a tensor looks like; B samples.
enum class Form {
  kFull,    ///< [B, 6]
  kHalf,    ///< [B, 3]
  kFolded,  ///< [B, 2, 3]
  kTurned,  ///< [6, B]
  kRow,     ///< [6]
};

/// A tensor that the forward has made. Views share a group with what they view.
struct Value {
  torch::Tensor tensor;
  Form form = Form::kFull;
  int group = 0;
};

/// What the forward works with.
struct Net : torch::nn::Module {
  explicit Net(std::uint64_t seed);
  std::uint64_t seed;
  std::vector<torch::Tensor> weights;  ///< [6, 6]; some frozen.
  std::vector<torch::Tensor> biases;   ///< [6]; likewise.
  torch::Tensor written;               ///< Buffer [6].
  torch::Tensor fixed;                 ///< Buffer [6].
};

/// One forward, being made up as it runs: choices depend on the seed alone.
class Program {
 public:
  /// log   gets a line for each operation; may be null.
  Program(Net& net, const Batch& batch, std::ostream* log);

  Losses run(int num_operations);

 private:
  using Tensor = torch::Tensor;

  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  bool chance(int percent) { return pick(100) < static_cast<std::uint64_t>(percent); }
  std::size_t some();
  std::size_t some(Form form);
  std::size_t some_writable(Form form);
  Tensor weight() { return net_.weights[pick(net_.weights.size())]; }
  Tensor bias() { return net_.biases[pick(net_.biases.size())]; }
  Tensor full() { return values_[some(Form::kFull)].tensor; }
  void keep(Tensor tensor, Form form, const std::string& what);
  void keep_view(Tensor tensor, Form form, std::size_t of, const std::string& what);
  void note(const std::string& what);
  void save(std::size_t value) { saved_.insert(values_[value].group); }

  void step();
  void pointwise();    ///< New values whose backward needs what went in or came out.
  void add_up();       ///< New values whose backward needs nothing.
  void layer();        ///< Uses of parameters.
  void factory();      ///< Fresh memory.
  void view();         ///< Other forms of the same memory.
  void reshape();      ///< Back to [B, 6], by a copy or a view.
  void write();        ///< In place, to what may be written.
  void write_part();   ///< In place, through a view, with indices or a mask.
  void change_mode();  ///< Without gradients, detached, toggled.
  void draw();         ///< Random numbers.
  void touch_buffer();
  void select();  ///< Several outputs, indices.
  Losses losses();

  Net& net_;
  const Batch& batch_;
  std::ostream* log_;
  std::mt19937_64 random_;
  std::vector<Value> values_;
  std::set<int> saved_;  ///< Groups that some backward needs as they are.
  int num_groups_ = 0;
};

}  // namespace trireme::random_nets
