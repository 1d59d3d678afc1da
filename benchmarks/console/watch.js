// Notes every frame that came late and every task that held the page, until its result is asked for.
(() => {
  const found = { frames: 0, lateFrames: 0, worstFrameMs: 0, longTasks: 0, worstTaskMs: 0, lastTaskEndMs: 0 };
  let before = 0;
  const frame = (now) => {
    if (before) {
      const tookMs = now - before;
      found.frames += 1;
      found.worstFrameMs = Math.max(found.worstFrameMs, tookMs);
      if (tookMs > 50) found.lateFrames += 1;
    }
    before = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) {
      found.longTasks += 1;
      found.worstTaskMs = Math.max(found.worstTaskMs, duration);
      found.lastTaskEndMs = startTime + duration;
    }
  }).observe({ type: "longtask", buffered: true });
  window.watched = () => {
    const result = { ...found };
    Object.assign(found, { frames: 0, lateFrames: 0, worstFrameMs: 0, longTasks: 0, worstTaskMs: 0 });
    return result;
  };
})();
