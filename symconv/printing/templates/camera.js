// Which part of the drawing the window shows: its middle and how many pixels a unit has.

const LEAST_SCALE = 0.02, MOST_SCALE = 4;
const moves = matchMedia("(prefers-reduced-motion: reduce)");

class Camera {
  constructor(onChange) {
    Object.assign(this, { x: 0, y: 0, scale: 1, width: 1, height: 1, moving: 0, onChange });
  }

  toScreen(x, y) {
    return [(x - this.x) * this.scale + this.width / 2, (y - this.y) * this.scale + this.height / 2];
  }

  toWorld(left, top) {
    return [(left - this.width / 2) / this.scale + this.x, (top - this.height / 2) / this.scale + this.y];
  }

  panBy(dx, dy) {
    this.stop();
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.onChange();
  }

  // Zoom so that the point of the drawing under (left, top) stays where it is.
  zoomAt(left, top, factor) {
    this.stop();
    const [x, y] = this.toWorld(left, top);
    this.scale = Math.min(Math.max(this.scale * factor, LEAST_SCALE), MOST_SCALE);
    this.x = x - (left - this.width / 2) / this.scale;
    this.y = y - (top - this.height / 2) / this.scale;
    this.onChange();
  }

  // The place from which a rectangle is seen whole, not larger than life.
  fitting(x, y, width, height, margin = 40) {
    const scale = Math.min((this.width - 2 * margin) / Math.max(width, 1), (this.height - 2 * margin) / Math.max(height, 1), 1.15);
    return { x: x + width / 2, y: y + height / 2, scale: Math.max(scale, LEAST_SCALE) };
  }

  // Move to a place, smoothly unless the reader asked for no motion.
  moveTo(place, smoothly = true) {
    this.stop();
    if (!smoothly || moves.matches) {
      Object.assign(this, place);
      this.onChange();
      return;
    }
    const start = { x: this.x, y: this.y, scale: this.scale };
    const began = performance.now();
    const step = (now) => {
      const part = Math.min(Math.max((now - began) / 220, 0), 1);
      const eased = 1 - (1 - part) ** 3;
      this.scale = start.scale * (place.scale / start.scale) ** eased;
      this.x = start.x + (place.x - start.x) * eased;
      this.y = start.y + (place.y - start.y) * eased;
      this.onChange();
      this.moving = part < 1 ? requestAnimationFrame(step) : 0;
    };
    this.moving = requestAnimationFrame(step);
  }

  stop() {
    cancelAnimationFrame(this.moving);
    this.moving = 0;
  }
}
