// Runs a kernel for the Python tests beside this file, which compare it with other libraries' own.
//
//   judge OPERATION INPUTS OUTPUTS     safetensors files; options are their metadata
//
// A trireme::Error ends it with exit code 3 and its message on standard error.

#include "tests/judges/judge.h"

#include <cstdio>

#include "trireme/error.h"

namespace {

int run(const std::string& name, const char* inputs, const char* outputs) {
  trireme::judges::Operations operations;
  trireme::judges::add_attention(operations);
  trireme::judges::add_coco(operations);
  trireme::judges::add_detection(operations);
  trireme::judges::add_log_mel(operations);
  trireme::judges::add_normalization(operations);
  trireme::judges::add_objects(operations);
  trireme::judges::add_optimizers(operations);
  trireme::judges::add_ranking(operations);
  trireme::judges::add_transducer(operations);
  trireme::judges::add_volume(operations);
  trireme::judges::add_word_error_rate(operations);
  const auto found = operations.find(name);
  if (found == operations.end()) {
    std::fprintf(stderr, "there is no operation \"%s\"\n", name.c_str());
    return 2;
  }
  found->second(trireme::judges::Tensors::read(inputs)).write(outputs);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: judge OPERATION INPUTS OUTPUTS\n");
    return 2;
  }
  try {
    return run(argv[1], argv[2], argv[3]);
  } catch (const trireme::Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    return 3;
  }
}
