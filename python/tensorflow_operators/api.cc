#include "python/tensorflow_operators/api.h"

#include <dlfcn.h>

namespace trireme::tensorflow {
namespace {

// TensorFlow's library, which `import tensorflow` has loaded before.
void* find_library() {
  for (const char* name : {"libtensorflow_framework.so.2", "libtensorflow_framework.so"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_NOLOAD); library != nullptr) return library;
  }
  return nullptr;
}

class Finder {
 public:
  explicit Finder(void* library) : library_(library) {}

  template <class Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (function == nullptr) missing_ += std::string(missing_.empty() ? "" : ", ") + name;
  }

  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

void find_values(Finder& finder, Api& api) {
  finder.find(api.new_status, "TF_NewStatus");
  finder.find(api.delete_status, "TF_DeleteStatus");
  finder.find(api.set_status, "TF_SetStatus");
  finder.find(api.get_code, "TF_GetCode");
  finder.find(api.message, "TF_Message");
  finder.find(api.tensor_data, "TF_TensorData");
  finder.find(api.tensor_bytes, "TF_TensorByteSize");
  finder.find(api.tensor_type, "TF_TensorType");
  finder.find(api.num_dims, "TF_NumDims");
  finder.find(api.dim, "TF_Dim");
  finder.find(api.delete_tensor, "TF_DeleteTensor");
}

void find_definitions(Finder& finder, Api& api) {
  finder.find(api.new_op, "TF_NewOpDefinitionBuilder");
  finder.find(api.add_attr, "TF_OpDefinitionBuilderAddAttr");
  finder.find(api.add_input, "TF_OpDefinitionBuilderAddInput");
  finder.find(api.add_output, "TF_OpDefinitionBuilderAddOutput");
  finder.find(api.set_stateful, "TF_OpDefinitionBuilderSetIsStateful");
  finder.find(api.set_shapes, "TF_OpDefinitionBuilderSetShapeInferenceFunction");
  finder.find(api.register_op, "TF_RegisterOpDefinition");
  finder.find(api.num_shapes, "TF_ShapeInferenceContextNumInputs");
  finder.find(api.new_shape, "TF_NewShapeHandle");
  finder.find(api.delete_shape, "TF_DeleteShapeHandle");
  finder.find(api.get_shape, "TF_ShapeInferenceContextGetInput");
  finder.find(api.set_shape, "TF_ShapeInferenceContextSetOutput");
  finder.find(api.set_unknown_shape, "TF_ShapeInferenceContextSetUnknownShape");
}

void find_kernels(Finder& finder, Api& api) {
  finder.find(api.new_kernel, "TF_NewKernelBuilder");
  finder.find(api.register_kernel, "TF_RegisterKernelBuilder");
  finder.find(api.get_int, "TF_OpKernelConstruction_GetAttrInt32");
  finder.find(api.get_string, "TF_OpKernelConstruction_GetAttrString");
  finder.find(api.construction_failure, "TF_OpKernelConstruction_Failure");
  finder.find(api.num_inputs, "TF_NumInputs");
  finder.find(api.get_input, "TF_GetInput");
  finder.find(api.allocate_output, "TF_AllocateOutput");
  finder.find(api.fail, "TF_OpKernelContext_Failure");
}

}  // namespace

std::string load(Api& api) {
  void* library = find_library();
  if (library == nullptr) return "libtensorflow_framework.so, which `import tensorflow` loads";
  Finder finder(library);
  find_values(finder, api);
  find_definitions(finder, api);
  find_kernels(finder, api);
  return finder.missing();
}

}  // namespace trireme::tensorflow
