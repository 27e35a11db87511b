/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface: every operation through one call, from any language that can load a library.
   tessera_operations.h has a typed function for each operation on top of it.

   Handles are opaque; who is given one destroys it, in any order: each keeps alive what it needs.
   Null is allowed to be destroyed. Threads: contexts and tensors may be shared, a stream belongs to
   one thread at a time.

   Errors: functions return a status and never throw or end the process. tessera_last_error() is the
   message of the calling thread's last call that failed. A call that fails before it is launched
   has changed nothing, and its results are not set.

   Versions: structs that may grow begin with struct_size, which the caller sets to sizeof; fields
   that an older caller does not know are taken as zero, and zero is always what was meant before
   there was the field. Other structs and the values of enumerations do not change within a soname.
 */
#ifndef TESSERA_TESSERA_H
#define TESSERA_TESSERA_H

#include <stddef.h>
#include <stdint.h>

#include "tessera/export.hpp"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status ------------------------------------------------------------------------------------
 */

/* What the classes of tessera/error.hpp say. */
typedef enum tessera_status {
  TESSERA_SUCCESS = 0,
  TESSERA_INVALID_ARGUMENT = 1,
  TESSERA_UNSUPPORTED = 2,
  TESSERA_NO_DEVICE = 3,
  TESSERA_DEVICE_ERROR = 4,
  TESSERA_BUILD_ERROR = 5,
  TESSERA_OUT_OF_DEVICE_MEMORY = 6,
  TESSERA_OUT_OF_HOST_MEMORY = 7,
  TESSERA_DATA_ERROR = 8,
  TESSERA_DEVICE_LOST = 9,
  TESSERA_CACHE_ERROR = 10,
  TESSERA_INTERNAL_ERROR = 11 /* anything else; please report it */
} tessera_status;

/* Of the calling thread's last call that failed; "" where none has. Valid until its next one. */
TESSERA_API const char* tessera_last_error(void);
TESSERA_API const char* tessera_status_name(tessera_status status); /* "invalid argument" */
TESSERA_API const char* tessera_version(void);                      /* "0.1.0", of the library */

/* ---- tensors -----------------------------------------------------------------------------------
 */

typedef struct tessera_context tessera_context;
typedef struct tessera_stream tessera_stream;
typedef struct tessera_tensor tessera_tensor;
typedef struct tessera_error_log tessera_error_log;

/* As tessera/dtype.hpp has them. */
typedef enum tessera_dtype {
  TESSERA_F32 = 0,
  TESSERA_F16 = 1,
  TESSERA_BF16 = 2,
  TESSERA_I32 = 3,
  TESSERA_U8 = 4,
  TESSERA_F64 = 5,
  TESSERA_I8 = 6,
  TESSERA_I4 = 7,
  TESSERA_U4 = 8,
  TESSERA_E4M3FN = 9,
  TESSERA_E5M2 = 10
} tessera_dtype;

/* Strides and offset count elements. */
typedef struct tessera_spec {
  size_t struct_size;
  tessera_dtype dtype;
  uint32_t rank;
  const int64_t* shape;   /* [rank] */
  const int64_t* strides; /* [rank]; null: row-major without gaps */
  int64_t offset;
} tessera_spec;

/* ---- contexts and streams ----------------------------------------------------------------------
 */

typedef struct tessera_context_options {
  size_t struct_size;
  const char* device;          /* as TESSERA_DEVICE; null: that variable, then the best device */
  const char* cache_directory; /* null: TESSERA_CACHE_DIR, then XDG; "": no persistent cache */
  int32_t ignore_environment;  /* 1: no environment variable is looked at */
} tessera_context_options;

/* `options` may be null. */
TESSERA_API tessera_status tessera_open(const tessera_context_options* options,
                                        tessera_context** context);
TESSERA_API void tessera_context_destroy(tessera_context* context);
/* One line about the device; valid as long as the context. Null for a null context. */
TESSERA_API const char* tessera_device_summary(const tessera_context* context);
/* Waits for the calls on the context itself. */
TESSERA_API tessera_status tessera_synchronize(const tessera_context* context);
/* Frees the memory that outputs which were let go left for later ones of their stream and size.
   Not needed where a later allocation fails: it frees them, too. `bytes` may be null. */
TESSERA_API tessera_status tessera_release_memory(const tessera_context* context, uint64_t* bytes);

TESSERA_API tessera_status tessera_stream_create(const tessera_context* context,
                                                 tessera_stream** stream);
TESSERA_API tessera_status tessera_stream_synchronize(tessera_stream* stream);
TESSERA_API void tessera_stream_destroy(tessera_stream* stream);

/* Uninitialised; the spec has no strides and no offset. */
TESSERA_API tessera_status tessera_tensor_create(const tessera_context* context,
                                                 const tessera_spec* spec, tessera_tensor** tensor);
/* The same, with row-major elements from `data` of `bytes` bytes. */
TESSERA_API tessera_status tessera_upload(const tessera_context* context, const tessera_spec* spec,
                                          const void* data, size_t bytes, tessera_tensor** tensor);
/* Waits; row-major elements, which take `bytes` bytes. */
TESSERA_API tessera_status tessera_download(const tessera_context* context,
                                            const tessera_tensor* tensor, void* data, size_t bytes);
/* Other elements, or another order, of the same memory. */
TESSERA_API tessera_status tessera_tensor_view(const tessera_tensor* tensor,
                                               const tessera_spec* spec, tessera_tensor** view);
/* Fills in as many fields as struct_size has room for; its pointers live as long as the tensor. */
TESSERA_API tessera_status tessera_tensor_spec(const tessera_tensor* tensor, tessera_spec* spec);
TESSERA_API void tessera_tensor_destroy(tessera_tensor* tensor);

/* ---- calls -------------------------------------------------------------------------------------
 */

typedef enum tessera_value_type {
  TESSERA_UNSET = 0, /* as if the option were not there */
  TESSERA_BOOL = 1,
  TESSERA_INT = 2,
  TESSERA_FLOAT = 3,
  TESSERA_TEXT = 4,
  TESSERA_INTS = 5
} tessera_value_type;

typedef struct tessera_value {
  tessera_value_type type;
  uint32_t count; /* of integers */
  union {
    int64_t integer; /* TESSERA_BOOL, TESSERA_INT */
    double number;
    const char* text;
    const int64_t* integers;
  } as;
} tessera_value;

typedef struct tessera_option {
  const char* name;
  tessera_value value;
} tessera_option;

/* An operand that the call reads, in-out ones among them. Without a tensor it is left out. Where
   a call is only asked about, `spec` may stand in place of the tensor. */
typedef struct tessera_operand {
  const char* name;
  const tessera_tensor* tensor;
  const tessera_spec* spec;
} tessera_operand;

/* An output: *tensor is written to, or where it is null becomes a new tensor. A null `tensor`
   leaves the output out. For questions, `spec` may describe the tensor; a run does not look at it.
 */
typedef struct tessera_output {
  const char* name;
  tessera_tensor** tensor;
  const tessera_spec* spec;
} tessera_output;

typedef struct tessera_call {
  size_t struct_size;
  const char* operation; /* "flash_attention" */
  const tessera_operand* operands;
  size_t operand_count;
  const tessera_option* options;
  size_t option_count;
  const tessera_output* outputs;
  size_t output_count;
  const char* variant;          /* this one or an error; null: as selection likes */
  const tessera_stream* stream; /* null: the context's own */
} tessera_call;

/* Launches the call, however long it takes on the device, and returns; synchronize, or a download,
   waits for it and returns TESSERA_DATA_ERROR for what its kernels found wrong in the elements of
   operands. */
TESSERA_API tessera_status tessera_run(const tessera_context* context, const tessera_call* call);
/* TESSERA_UNSUPPORTED: the device does not take the call, and tessera_last_error() says why. */
TESSERA_API tessera_status tessera_query_support(const tessera_context* context,
                                                 const tessera_call* call);
/* Builds what the calls need, so that their first runs wait for no compiler. */
TESSERA_API tessera_status tessera_prewarm(const tessera_context* context,
                                           const tessera_call* const* calls, size_t count);
/* Bytes of device memory that a run takes besides its operands. Builds what the call needs. */
TESSERA_API tessera_status tessera_scratch_bytes(const tessera_context* context,
                                                 const tessera_call* call, uint64_t* bytes);
/* The longest time that a launch may take on the device from the next call on; 0: as long as it
   takes. tessera/prewarm.hpp says what is measured, and what is cut. */
TESSERA_API tessera_status tessera_set_max_dispatch_ms(const tessera_context* context,
                                                       double milliseconds);
/* What the calling thread's last call on the context ran, such as
   "flash_attention.tile/f16@vulkan:llvmpipe{BLOCK_Q=32}". Valid until the thread asks again. */
TESSERA_API tessera_status tessera_last_execution(const tessera_context* context,
                                                  const char** name);

/* ---- errors that kernels raise ------------------------------------------------------------------
 */

/* Words in which kernels raise the errors of calls that the caller waits for by other means than
   synchronizing: each call takes as many as its operation has kinds of errors. A log that is full
   refuses calls until it is cleared. */
TESSERA_API tessera_status tessera_error_log_create(const tessera_context* context, uint32_t words,
                                                    tessera_error_log** log);
/* Later calls on the stream raise their errors in the log, which is kept as long; null: in words of
   the stream, which are read where it waits. */
TESSERA_API tessera_status tessera_stream_set_error_log(tessera_stream* stream,
                                                        const tessera_error_log* log);
/* After the caller's own wait for the calls: TESSERA_DATA_ERROR for the first error that one of
   them raised. Reads the words on the context's own queue, and waits for it. */
TESSERA_API tessera_status tessera_error_log_check(const tessera_error_log* log);
/* The words, i32, -1 where nothing was raised, for a caller that copies them on the device; and the
   same check of `count` words, from the first one on, that it has read. */
TESSERA_API tessera_status tessera_error_log_words(const tessera_error_log* log,
                                                   tessera_tensor** words);
TESSERA_API tessera_status tessera_error_log_check_words(const tessera_error_log* log,
                                                         const int32_t* words, size_t count);
/* Forgets the calls so far and what they raised. None of them may be under way. */
TESSERA_API tessera_status tessera_error_log_clear(const tessera_error_log* log);
TESSERA_API void tessera_error_log_destroy(tessera_error_log* log);

/* ---- the application's own OpenCL --------------------------------------------------------------
 */

/* As in tessera/interop/opencl.hpp; the handles are cl_context, cl_device_id, cl_command_queue,
   cl_mem and cl_event. TESSERA_UNSUPPORTED where the library was built without OpenCL. */
TESSERA_API tessera_status tessera_opencl_open(void* cl_context, void* cl_device_id,
                                               void* cl_command_queue,
                                               const tessera_context_options* options,
                                               tessera_context** context);
TESSERA_API tessera_status tessera_opencl_stream(const tessera_context* context,
                                                 void* cl_command_queue, tessera_stream** stream);
TESSERA_API tessera_status tessera_opencl_tensor(const tessera_context* context, void* cl_mem,
                                                 const tessera_spec* spec, tessera_tensor** tensor);
TESSERA_API tessera_status tessera_opencl_memory(const tessera_tensor* tensor, void** cl_mem);
/* `stream` null: the context's own. */
TESSERA_API tessera_status tessera_opencl_wait_for(const tessera_context* context,
                                                   const tessera_stream* stream,
                                                   void* const* cl_events, size_t count);
TESSERA_API tessera_status tessera_opencl_event_after(const tessera_context* context,
                                                      const tessera_stream* stream,
                                                      void** cl_event);

/* ---- the application's own Vulkan --------------------------------------------------------------
 */

/* As in tessera/interop/vulkan.hpp, whose header says what lives how long and where barriers are.
   Handles that are pointers on every machine are void*, the others uint64_t. TESSERA_UNSUPPORTED
   where the library was built without Vulkan. */
typedef struct tessera_vulkan_device {
  size_t struct_size;
  void* instance;       /* VkInstance */
  uint32_t api_version; /* VkApplicationInfo::apiVersion */
  uint32_t queue_family;
  void* physical_device;         /* VkPhysicalDevice */
  void* device;                  /* VkDevice */
  void* queue;                   /* VkQueue */
  const char* const* extensions; /* as VkDeviceCreateInfo had them, like the next two */
  size_t extension_count;
  const void* features;          /* pNext */
  const void* base_features;     /* VkPhysicalDeviceFeatures; may be null */
  void (*lock)(void* user_data); /* around each submission; null: none */
  void (*unlock)(void* user_data);
  void* user_data;
  void (*get_instance_proc_addr)(void); /* PFN_vkGetInstanceProcAddr; null: the process' */
} tessera_vulkan_device;

TESSERA_API tessera_status tessera_vulkan_open(const tessera_vulkan_device* device,
                                               const tessera_context_options* options,
                                               tessera_context** context);
TESSERA_API tessera_status tessera_vulkan_tensor(const tessera_context* context, uint64_t vk_buffer,
                                                 uint64_t offset, uint64_t bytes,
                                                 const tessera_spec* spec, tessera_tensor** tensor);
TESSERA_API tessera_status tessera_vulkan_buffer(const tessera_tensor* tensor, uint64_t* vk_buffer);
/* `stream` null: the context's own. */
TESSERA_API tessera_status tessera_vulkan_wait_for(const tessera_context* context,
                                                   const tessera_stream* stream,
                                                   uint64_t vk_semaphore, uint64_t value);
TESSERA_API tessera_status tessera_vulkan_signal(const tessera_context* context,
                                                 const tessera_stream* stream,
                                                 uint64_t vk_semaphore, uint64_t value);
/* `scratch` may be null. A recording never waits, so operations whose kernels raise errors, which
   are read where a stream waits, take an error log here: tessera_stream_set_error_log(). */
TESSERA_API tessera_status tessera_vulkan_record(const tessera_context* context,
                                                 void* vk_command_buffer,
                                                 const tessera_tensor* scratch,
                                                 tessera_stream** stream);
TESSERA_API tessera_status tessera_vulkan_restart(const tessera_stream* stream,
                                                  void* vk_command_buffer);

#ifdef __cplusplus
}
#endif

#endif
