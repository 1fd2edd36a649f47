/* Switching between stacks.  On x86-64 in a few instructions, elsewhere by swapcontext; the sanitizers are told. */
#include "tests/device/double/fiber.h"

#include <cstdint>
#include <cstdlib>
#include <new>
#include <sys/mman.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define FIBER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define FIBER_TSAN 1
#endif
#ifdef FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__x86_64__)
/* Saves what a function must keep on the old stack, and takes it from the new one. */
asm(".text\n"
    ".hidden twin_switch_stack\n"
    ".globl twin_switch_stack\n"
    ".type twin_switch_stack, @function\n"
    "twin_switch_stack:\n"
    "	pushq %rbp\n	pushq %rbx\n	pushq %r12\n	pushq %r13\n	pushq %r14\n	pushq %r15\n"
    "	movq %rsp, (%rdi)\n"
    "	movq %rsi, %rsp\n"
    "	popq %r15\n	popq %r14\n	popq %r13\n	popq %r12\n	popq %rbx\n	popq %rbp\n"
    "	ret\n"
    ".size twin_switch_stack, .-twin_switch_stack\n");
extern "C" void twin_switch_stack(void **save, void *load);
#endif

namespace twin
{

#if defined(FIBER_ASAN) || defined(FIBER_TSAN)
enum { STACK_BYTES = 256 * 1024 };
#else
enum { STACK_BYTES = 64 * 1024 };
#endif
enum { PAGE_BYTES = 4096, SAVED_REGISTERS = 6 };

static __thread fiber *starting; /* the one that is entered for the first time */

fiber::fiber(void (*what)(fiber *)) : body(what)
{
	void *const mapped = mmap(nullptr, STACK_BYTES + PAGE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (mapped == MAP_FAILED)
		throw std::bad_alloc();
	(void)mprotect(mapped, PAGE_BYTES, PROT_NONE); /* an overflow ends the program there */
	stack = (char *)mapped + PAGE_BYTES;
#if defined(__x86_64__)
	uintptr_t *top = (uintptr_t *)(stack + STACK_BYTES);
	*--top = 0; /* keeps the stack aligned as after a call */
	*--top = (uintptr_t)begin;
	for (int i = 0; i < SAVED_REGISTERS; i++)
		*--top = 0;
	own_sp = top;
#else
	ucontext_t *context = new ucontext_t;
	getcontext(context);
	context->uc_stack.ss_sp = stack;
	context->uc_stack.ss_size = STACK_BYTES;
	context->uc_link = nullptr;
	makecontext(context, begin, 0);
	own_sp = context;
	owner_sp = new ucontext_t;
#endif
#ifdef FIBER_TSAN
	own_tsan = __tsan_create_fiber(0);
#endif
}

fiber::~fiber()
{
#ifdef FIBER_TSAN
	__tsan_destroy_fiber(own_tsan);
#endif
#if !defined(__x86_64__)
	delete (ucontext_t *)own_sp;
	delete (ucontext_t *)owner_sp;
#endif
	munmap(stack - PAGE_BYTES, STACK_BYTES + PAGE_BYTES);
}

void fiber::to_fiber()
{
#if defined(__x86_64__)
	twin_switch_stack(&owner_sp, own_sp);
#else
	swapcontext((ucontext_t *)owner_sp, (ucontext_t *)own_sp);
#endif
}

void fiber::to_owner()
{
#if defined(__x86_64__)
	twin_switch_stack(&own_sp, owner_sp);
#else
	swapcontext((ucontext_t *)own_sp, (ucontext_t *)owner_sp);
#endif
}

void fiber::begin()
{
	fiber *const self = starting;
#ifdef FIBER_ASAN
	__sanitizer_finish_switch_fiber(
		self->own_fake, &self->owner_stack, &self->owner_stack_bytes);
#endif
	self->body(self);
	abort(); /* it never returns */
}

__attribute__((no_sanitize("thread"))) void fiber::resume()
{
	starting = this;
#ifdef FIBER_ASAN
	__sanitizer_start_switch_fiber(&owner_fake, stack, STACK_BYTES);
#endif
#ifdef FIBER_TSAN
	owner_tsan = __tsan_get_current_fiber();
	__tsan_switch_to_fiber(own_tsan, __tsan_switch_to_fiber_no_sync);
#endif
	to_fiber();
#ifdef FIBER_ASAN
	__sanitizer_finish_switch_fiber(owner_fake, nullptr, nullptr);
#endif
}

__attribute__((no_sanitize("thread"))) void fiber::pause()
{
#ifdef FIBER_ASAN
	__sanitizer_start_switch_fiber(&own_fake, owner_stack, owner_stack_bytes);
#endif
#ifdef FIBER_TSAN
	__tsan_switch_to_fiber(owner_tsan, __tsan_switch_to_fiber_no_sync);
#endif
	to_owner();
#ifdef FIBER_ASAN
	__sanitizer_finish_switch_fiber(own_fake, &owner_stack, &owner_stack_bytes);
#endif
}

void order_before(void *point)
{
#ifdef FIBER_TSAN
	__tsan_release(point);
#else
	(void)point;
#endif
}

void order_after(void *point)
{
#ifdef FIBER_TSAN
	__tsan_acquire(point);
#else
	(void)point;
#endif
}

} // namespace twin
