import { LabIcon } from '@jupyterlab/ui-components';

/** A hull with its keel: the toolbar already has a plain circular arrow, so this one must not look like it. */
export const keelIcon = new LabIcon({
  name: 'keel:keel',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" width="16" height="16">
  <g class="jp-icon3" fill="none" stroke="#616161" stroke-width="1.4" stroke-linecap="round" stroke-linejoin="round">
    <path d="M1.5 8h13c-.4 2.7-2.2 4-4.5 4H6C3.700 12 1.900 10.700 1.500 8z"/>
    <path d="M6.500 12l.8 2.500h1.400l.8-2.500"/>
    <path d="M8 5.500V1.500M5.800 3.300L8 1.300l2.200 2"/>
  </g>
</svg>`
});
