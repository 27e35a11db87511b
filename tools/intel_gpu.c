// SPDX-License-Identifier: Apache-2.0
// A preloaded library that makes Mesa's Intel drivers (ANV, iris) find a GPU that is not there. Their
// compilers work; what is submitted does nothing. Debian packages such libraries for AMD and NVIDIA
// (mesa-drm-shim), none for Intel.
//   TESSERA_INTEL_GPU=DEVICE:SLICES:SUBSLICES:EUS[:v] names the GPU: 9a49:1:6:16 Tiger Lake, 56a0:8:4:16:v
//   Arc A770 (v: it has memory of its own), 7d55:2:4:16 Meteor Lake. Sub-slices count per slice.
// The node of the GPU is /dev/full: a character device that anybody may open and nobody else maps or
// controls. Only the kernel driver i915 is imitated; ANV of Mesa 26 compiles for GPUs of xe through it,
// too: 64a0:2:4:8 Lunar Lake, e20b:5:4:8:v Battlemage.
//   cc -shared -fPIC -I DRM_HEADERS intel_gpu.c -o libintel_gpu.so
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <drm/drm.h>
#include <drm/i915_drm.h>
#include <xf86drm.h>

static char node[] = "/dev/full";
static unsigned device_id = 0x9a49, slices = 1, subslices = 6, eus = 16;
static int own_memory = 0;

__attribute__((constructor)) static void read_environment(void) {
  const char* text = getenv("TESSERA_INTEL_GPU");
  char last = 0;
  if (text != NULL && sscanf(text, "%x:%u:%u:%u:%c", &device_id, &slices, &subslices, &eus, &last) >= 4)
    own_memory = last == 'v';
}

static int is_gpu(int fd) {
  struct stat info;
  return fd >= 0 && fstat(fd, &info) == 0 && S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 7);
}

// ---- libdrm

static drmDevicePtr make_device(void) {
  drmDevicePtr device = calloc(1, sizeof *device);
  device->nodes = calloc(DRM_NODE_MAX, sizeof(char*));
  device->nodes[DRM_NODE_PRIMARY] = node;
  device->nodes[DRM_NODE_RENDER] = node;
  device->available_nodes = 1 << DRM_NODE_PRIMARY | 1 << DRM_NODE_RENDER;
  device->bustype = DRM_BUS_PCI;
  device->businfo.pci = calloc(1, sizeof(drmPciBusInfo));
  device->businfo.pci->dev = 2;
  device->deviceinfo.pci = calloc(1, sizeof(drmPciDeviceInfo));
  device->deviceinfo.pci->vendor_id = 0x8086;
  device->deviceinfo.pci->device_id = (uint16_t)device_id;
  return device;
}

int drmGetDevices2(uint32_t flags, drmDevicePtr devices[], int most) {
  (void)flags;
  if (devices != NULL && most > 0) devices[0] = make_device();
  return 1;
}
int drmGetDevices(drmDevicePtr devices[], int most) { return drmGetDevices2(0, devices, most); }
int drmGetDevice2(int fd, uint32_t flags, drmDevicePtr* device) {
  (void)fd, (void)flags;
  *device = make_device();
  return 0;
}
int drmGetDevice(int fd, drmDevicePtr* device) { return drmGetDevice2(fd, 0, device); }
void drmFreeDevice(drmDevicePtr* device) {
  if (device == NULL || *device == NULL) return;
  free((*device)->nodes);
  free((*device)->businfo.pci);
  free((*device)->deviceinfo.pci);
  free(*device);
  *device = NULL;
}
void drmFreeDevices(drmDevicePtr devices[], int count) {
  for (int i = 0; i < count; ++i) drmFreeDevice(&devices[i]);
}
int drmGetNodeTypeFromFd(int fd) { return (void)fd, DRM_NODE_RENDER; }
char* drmGetRenderDeviceNameFromFd(int fd) { return (void)fd, strdup(node); }
drmVersionPtr drmGetVersion(int fd) {
  (void)fd;
  drmVersionPtr version = calloc(1, sizeof *version);
  version->version_major = 1;
  version->version_minor = 6;
  version->name = strdup("i915");
  version->name_len = 4;
  version->date = strdup("20201103");
  version->desc = strdup("Intel Graphics");
  return version;
}
void drmFreeVersion(drmVersionPtr version) {
  if (version == NULL) return;
  free(version->name);
  free(version->date);
  free(version->desc);
  free(version);
}

// ---- the kernel driver

static int get_parameter(struct drm_i915_getparam* ask) {
  switch (ask->param) {
    case I915_PARAM_CHIPSET_ID: *ask->value = (int)device_id; return 0;
    case I915_PARAM_REVISION: *ask->value = 4; return 0;
    case I915_PARAM_CS_TIMESTAMP_FREQUENCY: *ask->value = 19200000; return 0;
    case I915_PARAM_HAS_ALIASING_PPGTT: *ask->value = 3; return 0;
    case I915_PARAM_NUM_FENCES_AVAIL: *ask->value = 8; return 0;
    case I915_PARAM_CMD_PARSER_VERSION: *ask->value = 10; return 0;
    case I915_PARAM_MMAP_VERSION:
    case I915_PARAM_MMAP_GTT_VERSION: *ask->value = 4; return 0;
    case I915_PARAM_SUBSLICE_TOTAL: *ask->value = (int)(slices * subslices); return 0;
    case I915_PARAM_EU_TOTAL: *ask->value = (int)(slices * subslices * eus); return 0;
    case I915_PARAM_PERF_REVISION: *ask->value = 3; return 0;
    case I915_PARAM_HAS_LLC: *ask->value = !own_memory; return 0;
    default: *ask->value = 1; return 0;
  }
}

// The kernel calls everything of a recent GPU one slice.
static int topology(struct drm_i915_query_topology_info* info, int room) {
  const int one = (int)(slices * subslices), eu_bytes = (int)(eus + 7) / 8, bytes = (one + 7) / 8;
  const int length = (int)sizeof *info + 1 + bytes + one * eu_bytes;
  if (room == 0) return length;
  memset(info, 0, (size_t)length);
  info->max_slices = 1;
  info->max_subslices = (uint16_t)one;
  info->max_eus_per_subslice = (uint16_t)eus;
  info->subslice_offset = 1;
  info->subslice_stride = (uint16_t)bytes;
  info->eu_offset = (uint16_t)(1 + bytes);
  info->eu_stride = (uint16_t)eu_bytes;
  info->data[0] = 1;
  for (int i = 0; i < one; ++i) {
    info->data[1 + i / 8] |= (uint8_t)(1u << (i % 8));
    for (unsigned e = 0; e < eus; ++e) info->data[1 + bytes + i * eu_bytes + (int)e / 8] |= (uint8_t)(1u << (e % 8));
  }
  return length;
}

static int engines(struct drm_i915_query_engine_info* info, int room) {
  const int length = (int)(sizeof *info + 2 * sizeof info->engines[0]);
  if (room == 0) return length;
  memset(info, 0, (size_t)length);
  info->num_engines = 2;
  info->engines[0].engine.engine_class = I915_ENGINE_CLASS_RENDER;
  info->engines[1].engine.engine_class = I915_ENGINE_CLASS_COPY;
  return length;
}

static int regions(struct drm_i915_query_memory_regions* info, int room) {
  const unsigned count = own_memory ? 2 : 1;
  const int length = (int)(sizeof *info + count * sizeof info->regions[0]);
  if (room == 0) return length;
  memset(info, 0, (size_t)length);
  info->num_regions = count;
  for (unsigned i = 0; i < count; ++i) {
    info->regions[i].region.memory_class = i == 0 ? I915_MEMORY_CLASS_SYSTEM : I915_MEMORY_CLASS_DEVICE;
    info->regions[i].probed_size = info->regions[i].unallocated_size = (uint64_t)8 << 30;
  }
  return length;
}

static int query(struct drm_i915_query* ask) {
  struct drm_i915_query_item* items = (void*)(uintptr_t)ask->items_ptr;
  for (uint32_t i = 0; i < ask->num_items; ++i) {
    void* data = (void*)(uintptr_t)items[i].data_ptr;
    const int room = items[i].length;
    switch (items[i].query_id) {
      case DRM_I915_QUERY_TOPOLOGY_INFO:
      case DRM_I915_QUERY_GEOMETRY_SUBSLICES: items[i].length = topology(data, room); break;
      case DRM_I915_QUERY_ENGINE_INFO: items[i].length = engines(data, room); break;
      case DRM_I915_QUERY_MEMORY_REGIONS: items[i].length = regions(data, room); break;
      default: items[i].length = -EINVAL;
    }
  }
  return 0;
}

static uint32_t next_handle = 1;

static int control(unsigned long request, void* argument) {
  switch (request) {
    case DRM_IOCTL_I915_GETPARAM: return get_parameter(argument);
    case DRM_IOCTL_I915_QUERY: return query(argument);
    case DRM_IOCTL_I915_GEM_CREATE: ((struct drm_i915_gem_create*)argument)->handle = next_handle++; return 0;
    case DRM_IOCTL_I915_GEM_CREATE_EXT: ((struct drm_i915_gem_create_ext*)argument)->handle = next_handle++; return 0;
    case DRM_IOCTL_I915_GEM_USERPTR: ((struct drm_i915_gem_userptr*)argument)->handle = next_handle++; return 0;
    case DRM_IOCTL_I915_GEM_MMAP_OFFSET: ((struct drm_i915_gem_mmap_offset*)argument)->offset = 0; return 0;
    case DRM_IOCTL_I915_GEM_CONTEXT_CREATE_EXT: ((struct drm_i915_gem_context_create_ext*)argument)->ctx_id = 1; return 0;
    case DRM_IOCTL_I915_GEM_VM_CREATE: ((struct drm_i915_gem_vm_control*)argument)->vm_id = 1; return 0;
    case DRM_IOCTL_I915_GEM_GET_APERTURE:
      ((struct drm_i915_gem_get_aperture*)argument)->aper_size = (uint64_t)1 << 48;
      ((struct drm_i915_gem_get_aperture*)argument)->aper_available_size = (uint64_t)1 << 48;
      return 0;
    case DRM_IOCTL_I915_GEM_CONTEXT_GETPARAM: {
      struct drm_i915_gem_context_param* ask = argument;
      ask->value = ask->param == I915_CONTEXT_PARAM_GTT_SIZE ? (uint64_t)1 << 48 : 0;
      return 0;
    }
    case DRM_IOCTL_GET_CAP: ((struct drm_get_cap*)argument)->value = 1; return 0;
    case DRM_IOCTL_SYNCOBJ_CREATE: ((struct drm_syncobj_create*)argument)->handle = next_handle++; return 0;
    default: return 0;
  }
}

int ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  if (!is_gpu(fd)) return (int)syscall(SYS_ioctl, fd, request, argument);
  return control(request, argument);
}

void* mmap64(void* at, size_t length, int protection, int flags, int fd, off_t offset) {
  if (is_gpu(fd))
    return (void*)syscall(SYS_mmap, at, length, protection, (flags & MAP_FIXED) | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
  return (void*)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}
void* mmap(void* at, size_t length, int protection, int flags, int fd, off_t offset) {
  return mmap64(at, length, protection, flags, fd, offset);
}
