/* Checked pointers: every read and write goes through the emulator with its line. */
#pragma once

/* An index and the line in which it was written: the line comes from where the conversion to this type happens. */
struct sc_index {
    ptrdiff_t value;
    int line;
    template <class I> sc_index(const I &index, int line = __builtin_LINE()) : value((ptrdiff_t)index), line(line) {}
};

template <class T> struct sc_unconst { typedef T type; };
template <class T> struct sc_unconst<const T> { typedef T type; };

/* An element; it turns into its value where one is needed. */
template <class T> class sc_reference {
    typedef typename sc_unconst<T>::type value_type;
    T *at;
    sc_buffer *buffer;
    int line;

  public:
    sc_reference(T *at, sc_buffer *buffer, int line) : at(at), buffer(buffer), line(line) {}
    sc_reference(const sc_reference &) = default;
    operator value_type() const {
        sc_current()->services->read(sc_current(), buffer, at, sizeof(T), alignof(T), line);
        return *at;
    }
    const sc_reference &operator=(const value_type &value) const {
        sc_current()->services->write(sc_current(), buffer, at, sizeof(T), alignof(T), line);
        *at = value;
        return *this;
    }
    const sc_reference &operator=(const sc_reference &other) const { return *this = (value_type)other; }
    template <class V> const sc_reference &operator+=(const V &value) const { return *this = (value_type)((value_type)*this + value); }
    template <class V> const sc_reference &operator-=(const V &value) const { return *this = (value_type)((value_type)*this - value); }
    template <class V> const sc_reference &operator*=(const V &value) const { return *this = (value_type)((value_type)*this * value); }
    template <class V> const sc_reference &operator|=(const V &value) const { return *this = (value_type)((value_type)*this | value); }
};

template <class T, bool IS_SHARED> class sc_pointer {
  public:
    T *at;
    sc_buffer *buffer;

    sc_pointer() = default;
    sc_pointer(T *at, sc_buffer *buffer) : at(at), buffer(buffer) {}
    template <class U> sc_pointer(const sc_pointer<U, IS_SHARED> &other) : at(other.at), buffer(other.buffer) {}
    sc_reference<T> operator[](sc_index index) const { return {at + index.value, buffer, index.line}; }
    template <class I> sc_pointer operator+(const I &n) const { return {at + (ptrdiff_t)n, buffer}; }
    template <class I> sc_pointer operator-(const I &n) const { return {at - (ptrdiff_t)n, buffer}; }
    ptrdiff_t operator-(const sc_pointer &other) const { return at - other.at; }
    template <class I> sc_pointer &operator+=(const I &n) { at += (ptrdiff_t)n; return *this; }
    template <class I> sc_pointer &operator-=(const I &n) { at -= (ptrdiff_t)n; return *this; }
    bool operator==(const sc_pointer &other) const { return at == other.at; }
    bool operator!=(const sc_pointer &other) const { return at != other.at; }
    bool operator<(const sc_pointer &other) const { return at < other.at; }
    explicit operator bool() const { return at != nullptr; }
};
template <class T> using sc_global = sc_pointer<T, false>;
template <class T> using sc_shared = sc_pointer<T, true>;

/* A shared array of one or more dimensions; it turns into a pointer to its first element. */
static inline void sc_check_dimension(const sc_index &index, size_t size) {
    if ((size_t)index.value >= size) sc_current()->services->outside(sc_current(), index.value, size, index.line);
}
template <class A> class sc_array;
template <class T, size_t N> class sc_array<T[N]> : public sc_shared<T> {
  public:
    explicit sc_array(sc_argument place) : sc_shared<T>((T *)place.at, place.buffer) {}
    sc_reference<T> operator[](sc_index index) const {
        sc_check_dimension(index, N);
        return static_cast<const sc_shared<T> &>(*this)[index];
    }
};
template <class T, size_t M, size_t N> class sc_array<T[M][N]> {
    sc_argument place;

  public:
    explicit sc_array(sc_argument place) : place(place) {}
    sc_array<T[N]> operator[](sc_index index) const {
        sc_check_dimension(index, M);
        return sc_array<T[N]>(sc_argument{place.at + index.value * (ptrdiff_t)sizeof(T[N]), place.buffer});
    }
};

template <class To, class From, bool S> static inline sc_pointer<To, S> sc_cast(const sc_pointer<From, S> &pointer) {
    return {(To *)pointer.at, pointer.buffer};
}
#define SC_ELEMENT(pointer, index) (pointer)[sc_index(index, line)]
template <class T, bool S> static inline bool sc_is_aligned(const sc_pointer<T, S> &pointer, int bytes) {
    return (uintptr_t)pointer.at % (uintptr_t)bytes == 0;
}
template <class T, bool S> static inline sc_argument sc_argument_of(const sc_pointer<T, S> &pointer) {
    return {(char *)pointer.at, pointer.buffer};
}
template <class T, bool S> static inline T *sc_place_for_atomic(const sc_pointer<T, S> &pointer, int line) {
    sc_current()->services->atomic(sc_current(), pointer.buffer, pointer.at, sizeof(T), line);
    return pointer.at;
}
#define SC_SHARED(type, name, dimensions) \
    typedef type name##_type dimensions; \
    sc_array<name##_type> name(sc_current()->services->shared(sc_current(), __COUNTER__, sizeof(name##_type), sizeof(type), #name, __LINE__))
#define SC_DYNAMIC_SHARED(type, name) \
    const sc_argument name##_place = sc_current()->services->shared(sc_current(), -1, 0, sizeof(type), #name, __LINE__); \
    const sc_shared<type> name((type *)name##_place.at, name##_place.buffer)
